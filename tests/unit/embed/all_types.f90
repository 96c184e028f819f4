program all_types
  ! Every type with two ranks, and every rank of 1 to 7 with one type: written, read back, and read in steps.
  use zcore
  use iso_c_binding
  implicit none
  character(len=1000) :: place
  call get_command_argument(1, place)
  call zcore_start()
  call try_int8()
  call try_int16()
  call try_int32()
  call try_int64()
  call try_float32()
  call try_float64()
  call try_complex64()
  call try_complex128()
  call try_bool()
  call try_ranks()
  print "(a)", "all the same"
contains

  subroutine try_int8()
    type(zcore_array) :: a
    integer(c_int8_t) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(int(i, c_int8_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "int8", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "int8"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "int8 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "int8 with strides"
    if (zcore_dtype(a) /= "int8") error stop "the name of int8"
    call zcore_close(a)
  end subroutine

  subroutine try_int16()
    type(zcore_array) :: a
    integer(c_int16_t) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(int(i, c_int16_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "int16", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "int16"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "int16 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "int16 with strides"
    if (zcore_dtype(a) /= "int16") error stop "the name of int16"
    call zcore_close(a)
  end subroutine

  subroutine try_int32()
    type(zcore_array) :: a
    integer(c_int32_t) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(int(i, c_int32_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "int32", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "int32"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "int32 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "int32 with strides"
    if (zcore_dtype(a) /= "int32") error stop "the name of int32"
    call zcore_close(a)
  end subroutine

  subroutine try_int64()
    type(zcore_array) :: a
    integer(c_int64_t) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(int(i, c_int64_t), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "int64", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "int64"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "int64 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "int64 with strides"
    if (zcore_dtype(a) /= "int64") error stop "the name of int64"
    call zcore_close(a)
  end subroutine

  subroutine try_float32()
    type(zcore_array) :: a
    real(c_float) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(real(i, c_float), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "float32", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "float32"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "float32 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "float32 with strides"
    if (zcore_dtype(a) /= "float32") error stop "the name of float32"
    call zcore_close(a)
  end subroutine

  subroutine try_float64()
    type(zcore_array) :: a
    real(c_double) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(real(i, c_double), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "float64", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "float64"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "float64 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "float64 with strides"
    if (zcore_dtype(a) /= "float64") error stop "the name of float64"
    call zcore_close(a)
  end subroutine

  subroutine try_complex64()
    type(zcore_array) :: a
    complex(c_float_complex) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(cmplx(i, -i, c_float_complex), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "complex64", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "complex64"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "complex64 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "complex64 with strides"
    if (zcore_dtype(a) /= "complex64") error stop "the name of complex64"
    call zcore_close(a)
  end subroutine

  subroutine try_complex128()
    type(zcore_array) :: a
    complex(c_double_complex) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(cmplx(i, -i, c_double_complex), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "complex128", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f /= g)) error stop "complex128"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part /= f(1::3, 2::2))) error stop "complex128 in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) /= f(1:5:2, 2:4:2))) error stop "complex128 with strides"
    if (zcore_dtype(a) /= "complex128") error stop "the name of complex128"
    call zcore_close(a)
  end subroutine

  subroutine try_bool()
    type(zcore_array) :: a
    logical(c_bool) :: f(5, 4), g(5, 4), part(2, 2)
    integer :: i
    f = reshape([(logical(mod(i, 3) == 0, c_bool), i = 1, 20)], [5, 4])
    a = zcore_create(place, [5, 4], "bool", chunks=[2, 3], options='{"overwrite": true}')
    call zcore_write(a, f, threads=1)
    call zcore_read(a, g)
    if (any(f .neqv. g)) error stop "bool"
    call zcore_read(a, part, start=[1, 2], step=[3, 2])
    if (any(part .neqv. f(1::3, 2::2))) error stop "bool in steps"
    g(1:5:2, 1:4:2) = f(1:5:2, 2:4:2)
    call zcore_write(a, g(1:5:2, 1:4:2), start=[2, 1])
    call zcore_read(a, g(1:5:2, 1:4:2), start=[2, 1])
    if (any(g(1:5:2, 1:4:2) .neqv. f(1:5:2, 2:4:2))) error stop "bool with strides"
    if (zcore_dtype(a) /= "bool") error stop "the name of bool"
    call zcore_close(a)
  end subroutine

  subroutine try_ranks()
    type(zcore_array) :: a
    real(c_double) :: n0, m0
    real(c_double), dimension(2) :: n1, m1
    real(c_double), dimension(2, 2) :: n2, m2
    real(c_double), dimension(2, 2, 2) :: n3, m3
    real(c_double), dimension(2, 2, 2, 2) :: n4, m4
    real(c_double), dimension(2, 2, 2, 2, 2) :: n5, m5
    real(c_double), dimension(2, 2, 2, 2, 2, 2) :: n6, m6
    real(c_double), dimension(2, 2, 2, 2, 2, 2, 2) :: n7, m7
    n0 = 7
    a = zcore_create(place, [integer ::], "float64", options='{"overwrite": true}')
    call zcore_write(a, n0)
    call zcore_read(a, m0)
    if (m0 /= n0) error stop "rank 0"
    call zcore_close(a)
    call random_number(n1)
    a = zcore_create(place, shape(n1), "float64", options='{"overwrite": true}')
    call zcore_write(a, n1)
    call zcore_read(a, m1)
    if (any(m1 /= n1)) error stop "rank 1"
    call zcore_close(a)
    call random_number(n2)
    a = zcore_create(place, shape(n2), "float64", options='{"overwrite": true}')
    call zcore_write(a, n2)
    call zcore_read(a, m2)
    if (any(m2 /= n2)) error stop "rank 2"
    call zcore_close(a)
    call random_number(n3)
    a = zcore_create(place, shape(n3), "float64", options='{"overwrite": true}')
    call zcore_write(a, n3)
    call zcore_read(a, m3)
    if (any(m3 /= n3)) error stop "rank 3"
    call zcore_close(a)
    call random_number(n4)
    a = zcore_create(place, shape(n4), "float64", options='{"overwrite": true}')
    call zcore_write(a, n4)
    call zcore_read(a, m4)
    if (any(m4 /= n4)) error stop "rank 4"
    call zcore_close(a)
    call random_number(n5)
    a = zcore_create(place, shape(n5), "float64", options='{"overwrite": true}')
    call zcore_write(a, n5)
    call zcore_read(a, m5)
    if (any(m5 /= n5)) error stop "rank 5"
    call zcore_close(a)
    call random_number(n6)
    a = zcore_create(place, shape(n6), "float64", options='{"overwrite": true}')
    call zcore_write(a, n6)
    call zcore_read(a, m6)
    if (any(m6 /= n6)) error stop "rank 6"
    call zcore_close(a)
    call random_number(n7)
    a = zcore_create(place, shape(n7), "float64", options='{"overwrite": true}')
    call zcore_write(a, n7)
    call zcore_read(a, m7)
    if (any(m7 /= n7)) error stop "rank 7"
    call zcore_close(a)
  end subroutine
end program
