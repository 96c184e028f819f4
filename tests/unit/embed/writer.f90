program writer
  ! A writer in Fortran: every type, frames and boxes along the last dimension and others, and what is refused.
  use zcore
  use, intrinsic :: iso_c_binding
  implicit none
  type(zcore_array) :: a
  type(zcore_writer) :: w
  type(zcore_error) :: e
  character(len=1000) :: place
  real(c_double) :: f(4, 3, 5), g(4, 3, 5)
  real(c_float) :: other(4, 3)
  integer :: i
  call get_command_argument(1, place)
  call zcore_start()
  call try_i1()
  call try_i2()
  call try_i4()
  call try_i8()
  call try_r4()
  call try_r8()
  call try_c8()
  call try_c16()
  call try_bool()

  f = reshape([(real(i, c_double), i = 1, 60)], [4, 3, 5])
  call create([4, 3, 0], 3)
  call zcore_writer_append(w, f(:, :, 1))
  call zcore_writer_append(w, f(:, :, 2:2))
  call zcore_writer_flush(w)
  if (any(zcore_shape(a) /= [4, 3, 2])) error stop "a flush"
  call zcore_writer_append(w, f(:, :, 3:5))
  call zcore_writer_write(w, -f(2:3, 1:2, 5:5), start=[2, 1, 5])
  if (zcore_writer_n_given(w) /= 5) error stop "frames given"
  call zcore_writer_close(w)
  call zcore_read(a, g)
  f(2:3, 1:2, 5) = -f(2:3, 1:2, 5)
  if (any(f /= g)) error stop "along the last dimension"

  call create([0, 3, 5], 1)
  call zcore_writer_append(w, f(1:1, :, :))
  call zcore_writer_append(w, f(2, :, :))
  call zcore_writer_append(w, f(3:4, :, :))
  call zcore_writer_close(w)
  call zcore_read(a, g)
  if (any(f /= g)) error stop "along the first dimension"

  call create([4, 0, 5], 2)
  call zcore_writer_append(w, f(:, 1, :))
  call zcore_writer_append(w, f(:, 2:3, :))
  call zcore_writer_close(w)
  call zcore_read(a, g)
  if (any(f /= g)) error stop "along the one between"

  call create([4, 3, 0], 3)
  call zcore_writer_append(w, other, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_append(w, f(:, 1, 1), error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_append(w, f(:, 1:2, 1), error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_write(w, f, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_write(w, f, start=[1, 1], error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_append(w, f)
  call zcore_writer_abort(w)
  call zcore_writer_append(w, f, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_flush(w, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_writer_close(w)
  w = zcore_writer_open(a, axis=4, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  w = zcore_writer_open(a, options='{"queue": -1}', error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_close(a)
  w = zcore_writer_open(a, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)

contains

  subroutine create(shape, axis)
    integer, intent(in) :: shape(3), axis
    call zcore_close(a)
    a = zcore_create(place, shape, "float64", chunks=[2, 2, 2], options='{"overwrite": true}')
    w = zcore_writer_open(a, axis=axis, options='{"queue": "1 MiB"}')
  end subroutine

  subroutine try_i1()
    integer(c_int8_t) :: x(5, 4), y(5, 4)
    x = reshape([(int(i, c_int8_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "int8", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "int8"
    call zcore_close(a)
  end subroutine

  subroutine try_i2()
    integer(c_int16_t) :: x(5, 4), y(5, 4)
    x = reshape([(int(i, c_int16_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "int16", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "int16"
    call zcore_close(a)
  end subroutine

  subroutine try_i4()
    integer(c_int32_t) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "int32", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "int32"
    call zcore_close(a)
  end subroutine

  subroutine try_i8()
    integer(c_int64_t) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "int64", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "int64"
    call zcore_close(a)
  end subroutine

  subroutine try_r4()
    real(c_float) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "float32", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "float32"
    call zcore_close(a)
  end subroutine

  subroutine try_r8()
    real(c_double) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "float64", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "float64"
    call zcore_close(a)
  end subroutine

  subroutine try_c8()
    complex(c_float_complex) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "complex64", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "complex64"
    call zcore_close(a)
  end subroutine

  subroutine try_c16()
    complex(c_double_complex) :: x(5, 4), y(5, 4)
    x = reshape([(i, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "complex128", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x /= y)) error stop "complex128"
    call zcore_close(a)
  end subroutine

  subroutine try_bool()
    logical(c_bool) :: x(5, 4), y(5, 4)
    x = reshape([(mod(i, 3) == 0, i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 0], "bool", chunks=[2, 3], options='{"overwrite": true}')
    w = zcore_writer_open(a)
    call zcore_writer_append(w, x(:, 1:3))
    call zcore_writer_append(w, x(:, 1))
    call zcore_writer_write(w, x(:, 4:4), start=[1, 4])
    call zcore_writer_close(w)
    call zcore_read(a, y)
    if (any(x .neqv. y)) error stop "bool"
    call zcore_close(a)
  end subroutine
end program
