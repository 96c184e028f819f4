! The output of a spectral code: a complex field of five dimensions, the last of them time, to which steps are appended.
! With MPI each rank has some of the planes along z and writes these.
!
!   spectral PLACE STEPS
!
! Build: gfortran -cpp $(python -m zcore.embed --fortran) spectral.f90 $(python -m zcore.embed --libs) -o spectral
! With MPI: mpif90 -cpp -DUSE_MPI ...
program spectral
  use zcore
  use, intrinsic :: iso_c_binding
#ifdef USE_MPI
  use mpi
#endif
  implicit none
  integer, parameter :: nx = 8, ny = 6, nz = 4, nv = 3
  type(zcore_array) :: array
  type(zcore_error) :: error
  complex(c_double_complex), allocatable :: field(:, :, :, :, :)
  character(len=1000) :: place
  character(len=20) :: text
  integer :: rank = 0, n_ranks = 1, first_z, last_z, first_t, t, n_steps, i, j, k, l
#ifdef USE_MPI
  integer :: code

  call mpi_init(code)
  call mpi_comm_rank(mpi_comm_world, rank, code)
  call mpi_comm_size(mpi_comm_world, n_ranks, code)
#endif
  call get_command_argument(1, place)
  call get_command_argument(2, text)
  read (text, *) n_steps
  first_z = nz * rank / n_ranks + 1
  last_z = nz * (rank + 1) / n_ranks
  allocate (field(nx, ny, first_z:last_z, nv, 1))
  call zcore_start()

  ! One rank creates the array, or makes it longer; then all open it.
  if (rank == 0) then
    array = zcore_open(place, "r+", error=error)
    if (error%code == zcore_e_node_not_found) then
      array = zcore_create(place, [nx, ny, nz, nv, 0], "complex128", chunks=[nx, ny, nz, nv, 1])
    else if (error%code /= 0) then
      error stop "cannot open"
    end if
    call zcore_resize(array, int(zcore_shape(array)) + [0, 0, 0, 0, n_steps])
    call zcore_set_attr(array, "code", '"spectral"')
    call zcore_close(array)
  end if
#ifdef USE_MPI
  call mpi_barrier(mpi_comm_world, code)
#endif
  array = zcore_open(place, "r+")
  first_t = int(dot_product(zcore_shape(array), [0, 0, 0, 0, 1])) - n_steps
  do t = first_t + 1, first_t + n_steps
    do concurrent (i = 1:nx, j = 1:ny, k = first_z:last_z, l = 1:nv)
      field(i, j, k, l, 1) = cmplx(i + 10*j + 100*k + 1000*l, t, c_double_complex)
    end do
    call zcore_write(array, field, start=[1, 1, first_z, 1, t])
  end do
  call zcore_close(array)
  if (rank == 0) print "(i0, a)", n_steps, " steps more"
#ifdef USE_MPI
  call mpi_finalize(code)
#endif
end program
