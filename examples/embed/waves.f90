! A wave whose field is stored, step by step, while the next step is computed.
!
!   waves PLACE STEPS
!
! Build: gfortran $(python -m zcore.embed --fortran) waves.f90 $(python -m zcore.embed --libs) -o waves
program waves
  use zcore
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: nx = 40, ny = 30
  type(zcore_array) :: array
  type(zcore_writer) :: writer
  real(c_double) :: before(nx, ny) = 0, now(nx, ny) = 0, next(nx, ny)
  character(len=1000) :: place
  character(len=20) :: text
  integer :: t, n_steps

  call get_command_argument(1, place)
  call get_command_argument(2, text)
  read (text, *) n_steps
  call zcore_start()
  ! Time is the last dimension here, and the first one for C and Python.
  array = zcore_create(place, [nx, ny, 0], "float64", chunks=[nx, ny, 16])
  writer = zcore_writer_open(array)
  now(nx / 2, ny / 2) = 1
  before = now
  do t = 1, n_steps
    call zcore_writer_append(writer, now)
    next = 2 * now - before + 0.25_c_double * (cshift(now, 1, 1) + cshift(now, -1, 1) + cshift(now, 1, 2) &
                                               + cshift(now, -1, 2) - 4 * now)
    before = now
    now = next
  end do
  call zcore_writer_close(writer)
  print "(i0, a)", dot_product(zcore_shape(array), [0, 0, 1]), " steps"
  call zcore_close(array)
end program
