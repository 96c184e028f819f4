program errors
  use zcore
  use iso_c_binding
  implicit none
  type(zcore_array) :: a, closed
  type(zcore_error) :: e
  real(c_double) :: f(4, 3), line(4)
  real(c_float) :: g(4, 3)
  character(len=1000) :: place, how
  call get_command_argument(1, place)
  call get_command_argument(2, how)
  call zcore_start()
  a = zcore_open("/nowhere/at/all", "r", error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  a = zcore_create(place, [4, 6], "float64", chunks=[2, 2], options='{"overwrite": true}')
  f = 0
  g = 0
  call zcore_write(a, f, start=[2, 2], error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_read(a, line, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_write(a, g, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  call zcore_read(closed, f, error=e)
  print "(i0, 1x, a)", e%code, trim(e%message)
  if (how == "stop") call zcore_write(a, f, start=[2, 2])
  call zcore_close(a)
end program
