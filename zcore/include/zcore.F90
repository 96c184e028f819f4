! zcore: chunked N-dimensional arrays for Fortran.
!
! Dimensions are listed as Fortran has them, the fastest first. In the file, and for Python and C, the same array has them
! in the reverse order; no element is moved for that. Indices begin with 1.
!
!   use zcore
!   type(zcore_array) :: array
!   type(zcore_error) :: error
!   call zcore_start(error)
!   array = zcore_create("run.zarr", [nx, ny, nt], "float64", chunks=[nx, ny, 1], error=error)
!   call zcore_write(array, field, start=[1, 1, t], error=error)
!   call zcore_close(array)
!
! A writer takes frames one by one, and stores them in the background while the program computes:
!
!   type(zcore_writer) :: writer
!   writer = zcore_writer_open(array)
!   call zcore_writer_append(writer, field)
!   call zcore_writer_close(writer)
!
! Every `error` may be left out: then a failure ends the program with its sentence. Build: this file, with
! `python -m zcore.embed --fortran`, and the flags of `python -m zcore.embed --libs`.
module zcore
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: zcore_array, zcore_error, zcore_start, zcore_open, zcore_create, zcore_close, zcore_ndim, zcore_shape
  public :: zcore_chunk_shape, zcore_object_shape, zcore_dtype, zcore_read, zcore_write, zcore_resize, zcore_refresh
  public :: zcore_get_attrs, zcore_set_attr, zcore_sync, zcore_is_open
  public :: zcore_writer, zcore_writer_open, zcore_writer_append, zcore_writer_write, zcore_writer_flush
  public :: zcore_writer_close, zcore_writer_abort, zcore_writer_n_given
  public :: zcore_e_ok, zcore_e_error, zcore_e_node_not_found, zcore_e_node_exists, zcore_e_array_mismatch
  public :: zcore_e_out_of_memory, zcore_e_metadata, zcore_e_unsupported, zcore_e_unknown_codec, zcore_e_selection
  public :: zcore_e_huge_index, zcore_e_store, zcore_e_invalid_key, zcore_e_key_conflict, zcore_e_read_only
  public :: zcore_e_not_a_directory_store, zcore_e_lock, zcore_e_reference_target, zcore_e_reference_format
  public :: zcore_e_asdf_format, zcore_e_chunk, zcore_e_chunk_memory, zcore_e_codec, zcore_e_checksum
  public :: zcore_e_shard_index, zcore_e_truncated, zcore_e_writer, zcore_e_argument, zcore_e_closed
  public :: zcore_e_not_started, zcore_e_abi, zcore_e_no_python, zcore_e_interrupted, zcore_e_python

  integer, parameter :: i8 = c_int64_t
  integer, parameter :: max_ndim = 64
  ! From it follows the interpreter that this file is installed for.
  character(len=*), parameter :: here = &
    __FILE__

  enum, bind(c)                        ! codes of `zcore_error`, as zcore.h explains them
    enumerator :: zcore_e_ok = 0, zcore_e_error = 1, zcore_e_node_not_found = 2, zcore_e_node_exists = 3
    enumerator :: zcore_e_array_mismatch = 4, zcore_e_out_of_memory = 5, zcore_e_metadata = 6
    enumerator :: zcore_e_unsupported = 7, zcore_e_unknown_codec = 8, zcore_e_selection = 9
    enumerator :: zcore_e_huge_index = 10, zcore_e_store = 11, zcore_e_invalid_key = 12
    enumerator :: zcore_e_key_conflict = 13, zcore_e_read_only = 14, zcore_e_not_a_directory_store = 15
    enumerator :: zcore_e_lock = 16, zcore_e_reference_target = 17, zcore_e_reference_format = 18
    enumerator :: zcore_e_asdf_format = 19, zcore_e_chunk = 20, zcore_e_chunk_memory = 21
    enumerator :: zcore_e_codec = 22, zcore_e_checksum = 23, zcore_e_shard_index = 24
    enumerator :: zcore_e_truncated = 25, zcore_e_writer = 26, zcore_e_argument = 40, zcore_e_closed = 41
    enumerator :: zcore_e_not_started = 42, zcore_e_abi = 43, zcore_e_no_python = 44
    enumerator :: zcore_e_interrupted = 45, zcore_e_python = 46
  end enum

  type :: zcore_array                  ! an open array; may be shared by threads
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  type :: zcore_error
    integer :: code = zcore_e_ok       ! 0: all is well
    integer :: sys_errno = 0
    character(len=1000) :: message = ""
  end type

  type, bind(c) :: c_error
    integer(c_int) :: code = 0
    integer(c_int) :: sys_errno = 0
    character(kind=c_char) :: message(1000)
  end type

  type, bind(c) :: c_dtype
    character(kind=c_char) :: kind, byte_order
    integer(c_int64_t) :: itemsize
    character(kind=c_char) :: name(32)
  end type

  type :: zcore_writer                 ! stores frames in the background; may be shared by threads
    private
    type(c_ptr) :: handle = c_null_ptr
    type(c_dtype) :: dtype
    integer :: axis = 0
    integer(i8), allocatable :: frame(:)     ! the array's shape when the writer was opened
  end type

  interface
    integer(c_int) function f_start(source, error) bind(c, name="zcore_f_start")
      import
      character(kind=c_char), intent(in) :: source(*)
      type(c_error) :: error
    end function
    type(c_ptr) function f_open(place, mode, options, error) bind(c, name="zcore_f_open")
      import
      character(kind=c_char), intent(in) :: place(*), mode(*)
      type(c_ptr), value :: options
      type(c_error) :: error
    end function
    type(c_ptr) function f_create(place, ndim, shape, chunks, dtype, options, error) bind(c, name="zcore_f_create")
      import
      character(kind=c_char), intent(in) :: place(*), dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: chunks, options
      type(c_error) :: error
    end function
    subroutine f_close(array) bind(c, name="zcore_f_close")
      import
      type(c_ptr), value :: array
    end subroutine
    integer(c_int) function f_ndim(array) bind(c, name="zcore_f_ndim")
      import
      type(c_ptr), value :: array
    end function
    subroutine f_shape(array, shape) bind(c, name="zcore_f_shape")
      import
      type(c_ptr), value :: array
      integer(c_int64_t) :: shape(*)
    end subroutine
    subroutine f_chunk_shape(array, shape) bind(c, name="zcore_f_chunk_shape")
      import
      type(c_ptr), value :: array
      integer(c_int64_t) :: shape(*)
    end subroutine
    subroutine f_object_shape(array, shape) bind(c, name="zcore_f_object_shape")
      import
      type(c_ptr), value :: array
      integer(c_int64_t) :: shape(*)
    end subroutine
    subroutine f_get_dtype(array, dtype) bind(c, name="zcore_f_get_dtype")
      import
      type(c_ptr), value :: array
      type(c_dtype) :: dtype
    end subroutine
    integer(c_int) function f_expect(array, dtype, ndim, error) bind(c, name="zcore_f_expect")
      import
      type(c_ptr), value :: array
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      type(c_error) :: error
    end function
    integer(c_int) function f_read(array, start, count, step, data, strides, threads, error) &
        bind(c, name="zcore_f_read")
      import
      type(c_ptr), value :: array, step, data, strides
      integer(c_int64_t), intent(in) :: start(*), count(*)
      integer(c_int), value :: threads
      type(c_error) :: error
    end function
    integer(c_int) function f_write(array, start, count, step, data, strides, threads, error) &
        bind(c, name="zcore_f_write")
      import
      type(c_ptr), value :: array, step, data, strides
      integer(c_int64_t), intent(in) :: start(*), count(*)
      integer(c_int), value :: threads
      type(c_error) :: error
    end function
    integer(c_int) function f_resize(array, shape, error) bind(c, name="zcore_f_resize")
      import
      type(c_ptr), value :: array
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_error) :: error
    end function
    integer(c_int) function f_refresh(array, error) bind(c, name="zcore_f_refresh")
      import
      type(c_ptr), value :: array
      type(c_error) :: error
    end function
    integer(c_int64_t) function f_get_attrs(array, json, size, error) bind(c, name="zcore_f_get_attrs")
      import
      type(c_ptr), value :: array
      character(kind=c_char) :: json(*)
      integer(c_int64_t), value :: size
      type(c_error) :: error
    end function
    integer(c_int) function f_set_attr(array, name, json, error) bind(c, name="zcore_f_set_attr")
      import
      type(c_ptr), value :: array, json
      character(kind=c_char), intent(in) :: name(*)
      type(c_error) :: error
    end function
    integer(c_int) function f_sync(array, error) bind(c, name="zcore_f_sync")
      import
      type(c_ptr), value :: array
      type(c_error) :: error
    end function
    type(c_ptr) function f_writer_open(array, axis, options, error) bind(c, name="zcore_f_writer_open")
      import
      type(c_ptr), value :: array, options
      integer(c_int), value :: axis
      type(c_error) :: error
    end function
    integer(c_int) function f_writer_append(writer, data, n_frames, error) bind(c, name="zcore_f_writer_append")
      import
      type(c_ptr), value :: writer, data
      integer(c_int64_t), value :: n_frames
      type(c_error) :: error
    end function
    integer(c_int) function f_writer_write(writer, start, count, data, error) bind(c, name="zcore_f_writer_write")
      import
      type(c_ptr), value :: writer, data
      integer(c_int64_t), intent(in) :: start(*), count(*)
      type(c_error) :: error
    end function
    integer(c_int) function f_writer_flush(writer, error) bind(c, name="zcore_f_writer_flush")
      import
      type(c_ptr), value :: writer
      type(c_error) :: error
    end function
    integer(c_int) function f_writer_close(writer, error) bind(c, name="zcore_f_writer_close")
      import
      type(c_ptr), value :: writer
      type(c_error) :: error
    end function
    integer(c_int) function f_writer_abort(writer, error) bind(c, name="zcore_f_writer_abort")
      import
      type(c_ptr), value :: writer
      type(c_error) :: error
    end function
    integer(c_int64_t) function f_writer_n_given(writer) bind(c, name="zcore_f_writer_n_given")
      import
      type(c_ptr), value :: writer
    end function
  end interface

  ! zcore_read(array, data [, start] [, step] [, threads] [, error]): the elements from `start` on, every `step`-th, as
  ! many as `data` has. zcore_write the same. `data`: any rank of the array's, any of the types below, which has to be the
  ! array's own. `threads`: 0 for the setting, 1 for none but the caller's.
  interface zcore_read
    module procedure read_i1, read_i2, read_i4, read_i8, read_r4, read_r8, read_c8, read_c16, read_bool
  end interface
  interface zcore_write
    module procedure write_i1, write_i2, write_i4, write_i8, write_r4, write_r8, write_c8, write_c16, write_bool
  end interface

  ! zcore_writer_append(writer, data [, error]): one frame, of a rank less than the array's, or several along the writer's
  ! axis. zcore_writer_write(writer, data [, start] [, error]): a box from `start` on, in the array with the frames so far.
  interface zcore_writer_append
    module procedure append_i1, append_i2, append_i4, append_i8, append_r4, append_r8, append_c8, append_c16, append_bool
  end interface
  interface zcore_writer_write
    module procedure box_i1, box_i2, box_i4, box_i8, box_r4, box_r8, box_c8, box_c16, box_bool
  end interface

contains

  subroutine zcore_start(error)
    ! Starts an interpreter in this program, once. Call it before anything else.
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_start(to_c(here), found) /= 0) call report(found, error)
  end subroutine

  function zcore_open(place, mode, options, error) result(array)
    ! `options`: a JSON object of keywords of zcore.open.
    character(len=*), intent(in) :: place, mode
    character(len=*), intent(in), optional :: options
    type(zcore_error), intent(out), optional :: error
    type(zcore_array) :: array
    type(c_error) :: found
    character(kind=c_char), allocatable, target :: text(:)
    type(c_ptr) :: at
    at = pointer_to(options, text)
    array%handle = f_open(to_c(place), to_c(mode), at, found)
    if (.not. c_associated(array%handle)) call report(found, error)
  end function

  function zcore_create(place, shape, dtype, chunks, options, error) result(array)
    ! `shape`, `chunks`: the fastest dimension first. `dtype`: such as "float64". `options`: a JSON object of keywords of
    ! zcore.create_array; lengths in it, such as those of shards, are in the file's order.
    character(len=*), intent(in) :: place, dtype
    integer, intent(in) :: shape(:)
    integer, intent(in), optional :: chunks(:)
    character(len=*), intent(in), optional :: options
    type(zcore_error), intent(out), optional :: error
    type(zcore_array) :: array
    type(c_error) :: found
    character(kind=c_char), allocatable, target :: text(:)
    integer(i8), allocatable, target :: lengths(:)
    type(c_ptr) :: at, cut
    cut = c_null_ptr
    if (present(chunks)) then
      if (size(chunks) /= size(shape)) then
        call refuse_length("chunks", size(chunks), size(shape), error)
        return
      end if
      allocate(lengths(size(chunks)))
      lengths(:) = reversed(chunks)
      if (size(lengths) > 0) cut = c_loc(lengths)
    end if
    at = pointer_to(options, text)
    array%handle = f_create(to_c(place), int(size(shape), c_int), reversed(shape), cut, to_c(dtype), at, found)
    if (.not. c_associated(array%handle)) call report(found, error)
  end function

  subroutine zcore_close(array)
    type(zcore_array), intent(inout) :: array
    if (c_associated(array%handle)) call f_close(array%handle)
    array%handle = c_null_ptr
  end subroutine

  logical function zcore_is_open(array)
    type(zcore_array), intent(in) :: array
    zcore_is_open = c_associated(array%handle)
  end function

  integer function zcore_ndim(array)
    type(zcore_array), intent(in) :: array
    zcore_ndim = f_ndim(array%handle)
  end function

  function zcore_shape(array) result(shape)
    type(zcore_array), intent(in) :: array
    integer(i8), allocatable :: shape(:)
    integer(i8) :: lengths(max_ndim)
    call f_shape(array%handle, lengths)
    shape = lengths(max(0, zcore_ndim(array)):1:-1)
  end function

  function zcore_chunk_shape(array) result(shape)
    ! Of what is read one by one.
    type(zcore_array), intent(in) :: array
    integer(i8), allocatable :: shape(:)
    integer(i8) :: lengths(max_ndim)
    call f_chunk_shape(array%handle, lengths)
    shape = lengths(max(0, zcore_ndim(array)):1:-1)
  end function

  function zcore_object_shape(array) result(shape)
    ! Of what is written one by one: the shard, where there are shards.
    type(zcore_array), intent(in) :: array
    integer(i8), allocatable :: shape(:)
    integer(i8) :: lengths(max_ndim)
    call f_object_shape(array%handle, lengths)
    shape = lengths(max(0, zcore_ndim(array)):1:-1)
  end function

  function zcore_dtype(array) result(name)
    ! As in Zarr v3, such as "float64"; empty where the type has no name.
    type(zcore_array), intent(in) :: array
    character(len=:), allocatable :: name
    type(c_dtype) :: dtype
    dtype%name = c_null_char
    call f_get_dtype(array%handle, dtype)
    name = from_c(dtype%name)
  end function

  subroutine zcore_resize(array, shape, error)
    type(zcore_array), intent(in) :: array
    integer, intent(in) :: shape(:)
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (size(shape) /= zcore_ndim(array)) then
      call refuse_length("shape", size(shape), zcore_ndim(array), error)
    else if (f_resize(array%handle, reversed(shape), found) /= 0) then
      call report(found, error)
    end if
  end subroutine

  subroutine zcore_refresh(array, error)
    type(zcore_array), intent(in) :: array
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_refresh(array%handle, found) /= 0) call report(found, error)
  end subroutine

  function zcore_get_attrs(array, error) result(json)
    type(zcore_array), intent(in) :: array
    type(zcore_error), intent(out), optional :: error
    character(len=:), allocatable :: json
    character(kind=c_char), allocatable :: text(:)
    type(c_error) :: found
    integer(i8) :: n
    n = 255
    do
      allocate(text(n + 1))
      n = f_get_attrs(array%handle, text, size(text, kind=i8), found)
      if (n < 0) then
        call report(found, error)
        json = ""
        return
      end if
      if (n < size(text, kind=i8)) exit
      deallocate(text)
    end do
    json = from_c(text)
  end function

  subroutine zcore_set_attr(array, name, json, error)
    ! Without `json` the attribute is deleted.
    type(zcore_array), intent(in) :: array
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: json
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    character(kind=c_char), allocatable, target :: text(:)
    type(c_ptr) :: at
    at = pointer_to(json, text)
    if (f_set_attr(array%handle, to_c(name), at, found) /= 0) call report(found, error)
  end subroutine

  subroutine zcore_sync(array, error)
    type(zcore_array), intent(in) :: array
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_sync(array%handle, found) /= 0) call report(found, error)
  end subroutine

  function zcore_writer_open(array, axis, options, error) result(writer)
    ! `axis`: the dimension along which frames follow each other, by default the last. `options`: a JSON object of keywords
    ! of zcore.Array.writer. The writer needs `array` no longer.
    type(zcore_array), intent(in) :: array
    integer, intent(in), optional :: axis
    character(len=*), intent(in), optional :: options
    type(zcore_error), intent(out), optional :: error
    type(zcore_writer) :: writer
    type(c_error) :: found
    character(kind=c_char), allocatable, target :: text(:)
    type(c_ptr) :: at
    at = pointer_to(options, text)
    writer%frame = zcore_shape(array)
    writer%axis = size(writer%frame)
    if (present(axis)) writer%axis = axis
    if (zcore_ndim(array) < 0) then
      call complain(zcore_e_closed, "the array is not open", error)
      return
    else if (writer%axis < 1 .or. writer%axis > size(writer%frame)) then
      call complain(zcore_e_argument, "axis is " // as_text(int(writer%axis, i8)) // ", expected 1 to " // &
                    as_text(size(writer%frame, kind=i8)), error)
      return
    end if
    call f_get_dtype(array%handle, writer%dtype)
    writer%handle = f_writer_open(array%handle, int(size(writer%frame) - writer%axis, c_int), at, found)
    if (.not. c_associated(writer%handle)) call report(found, error)
  end function

  subroutine zcore_writer_flush(writer, error)
    ! Stores all that was given; when it returns, all can be read.
    type(zcore_writer), intent(in) :: writer
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_writer_flush(writer%handle, found) /= 0) call report(found, error)
  end subroutine

  subroutine zcore_writer_close(writer, error)
    ! The same, and closes the writer. After an error it stays open with what could not be stored.
    type(zcore_writer), intent(inout) :: writer
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_writer_close(writer%handle, found) == 0) then
      writer%handle = c_null_ptr
    else
      call report(found, error)
    end if
  end subroutine

  subroutine zcore_writer_abort(writer, error)
    ! Closes the writer, and drops what waits.
    type(zcore_writer), intent(inout) :: writer
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    if (f_writer_abort(writer%handle, found) == 0) then
      writer%handle = c_null_ptr
    else
      call report(found, error)
    end if
  end subroutine

  integer(c_int64_t) function zcore_writer_n_given(writer)
    ! Number of frames that zcore_writer_append has taken so far; -1 of a writer that is closed.
    type(zcore_writer), intent(in) :: writer
    zcore_writer_n_given = f_writer_n_given(writer%handle)
  end function

  ! one read and one write for each type, of any rank

  subroutine read_i1(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int8_t), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "iu", 1, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_i2(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int16_t), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "iu", 2, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_i4(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int32_t), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "iu", 4, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_i8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int64_t), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "iumM", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_r4(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    real(c_float), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "f", 4, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_r8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    real(c_double), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "f", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_c8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    complex(c_float_complex), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "c", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_c16(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    complex(c_double_complex), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "c", 16, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine read_bool(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    logical(c_bool), dimension(..), intent(inout), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.false., array, "b", 1, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_i1(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int8_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "iu", 1, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_i2(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int16_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "iu", 2, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_i4(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int32_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "iu", 4, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_i8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    integer(c_int64_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "iumM", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_r4(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    real(c_float), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "f", 4, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_r8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    real(c_double), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "f", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_c8(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    complex(c_float_complex), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "c", 8, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_c16(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    complex(c_double_complex), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "c", 16, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine write_bool(array, data, start, step, threads, error)
    type(zcore_array), intent(in) :: array
    logical(c_bool), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    call move(.true., array, "b", 1, int(shape(data), i8), c_loc(data), start, step, threads, error)
  end subroutine

  subroutine append_i1(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int8_t), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "iu", 1, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_i2(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int16_t), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "iu", 2, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_i4(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int32_t), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "iu", 4, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_i8(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int64_t), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "iumM", 8, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_r4(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    real(c_float), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "f", 4, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_r8(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    real(c_double), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "f", 8, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_c8(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    complex(c_float_complex), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "c", 8, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_c16(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    complex(c_double_complex), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "c", 16, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine append_bool(writer, data, error)
    type(zcore_writer), intent(in) :: writer
    logical(c_bool), dimension(..), intent(in), target, contiguous :: data
    type(zcore_error), intent(out), optional :: error
    call give(.true., writer, "b", 1, int(shape(data), i8), c_loc(data), error=error)
  end subroutine

  subroutine box_i1(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int8_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "iu", 1, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_i2(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int16_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "iu", 2, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_i4(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int32_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "iu", 4, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_i8(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    integer(c_int64_t), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "iumM", 8, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_r4(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    real(c_float), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "f", 4, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_r8(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    real(c_double), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "f", 8, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_c8(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    complex(c_float_complex), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "c", 8, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_c16(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    complex(c_double_complex), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "c", 16, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine box_bool(writer, data, start, error)
    type(zcore_writer), intent(in) :: writer
    logical(c_bool), dimension(..), intent(in), target, contiguous :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    call give(.false., writer, "b", 1, int(shape(data), i8), c_loc(data), start, error)
  end subroutine

  subroutine give(appends, writer, kinds, itemsize, lengths, data, start, error)
    ! Gives a writer frames, or a box; see `move`.
    logical, intent(in) :: appends
    type(zcore_writer), intent(in) :: writer
    character(len=*), intent(in) :: kinds
    integer, intent(in) :: itemsize
    integer(i8), intent(in) :: lengths(:)
    type(c_ptr), intent(in) :: data
    integer, intent(in), optional :: start(:)
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    integer(i8) :: first(max_ndim), box(max_ndim)
    integer :: n, d, code
    if (.not. c_associated(writer%handle)) then
      call complain(zcore_e_closed, "the writer is not open", error)
      return
    end if
    n = size(writer%frame)
    first = 0
    if (size(lengths) == n) then
      box(:n) = lengths
    else if (appends .and. size(lengths) == n - 1) then
      box(:n) = [lengths(:writer%axis - 1), 1_i8, lengths(writer%axis:)]
    else
      call complain(zcore_e_array_mismatch, "the data have rank " // as_text(size(lengths, kind=i8)) // ", the array has " // &
                    as_text(int(n, i8)), error)
      return
    end if
    if (.not. is_of(writer%dtype, kinds, itemsize)) then
      call complain(zcore_e_array_mismatch, "the data are " // name_of(kinds, itemsize) // ", the array has elements of " // &
                    "type " // from_c(writer%dtype%name), error)
      return
    end if
    if (appends) then
      do d = 1, n
        if (d /= writer%axis .and. box(d) /= writer%frame(d)) then
          call complain(zcore_e_argument, "dimension " // as_text(int(d, i8)) // " of the data has length " // &
                        as_text(box(d)) // ", that of the array " // as_text(writer%frame(d)), error)
          return
        end if
      end do
      code = f_writer_append(writer%handle, data, box(writer%axis), found)
    else
      if (present(start)) then
        if (size(start) /= n) then
          call refuse_length("start", size(start), n, error)
          return
        end if
        first(:n) = reversed(start) - 1
      end if
      code = f_writer_write(writer%handle, first, box(n:1:-1), data, found)
    end if
    if (code /= 0) call report(found, error)
  end subroutine

  subroutine move(is_write, array, kinds, itemsize, lengths, data, start, step, threads, error)
    ! Reads or writes a box. `kinds`: letters of NumPy that the caller's type may have in the array.
    logical, intent(in) :: is_write
    type(zcore_array), intent(in) :: array
    character(len=*), intent(in) :: kinds
    integer, intent(in) :: itemsize
    integer(i8), intent(in) :: lengths(:)
    type(c_ptr), intent(in) :: data
    integer, intent(in), optional :: start(:), step(:), threads
    type(zcore_error), intent(out), optional :: error
    type(c_error) :: found
    type(c_dtype) :: dtype
    integer(i8), target :: first(max_ndim), steps(max_ndim)
    integer :: n, code
    n = size(lengths)
    first = 0
    steps = 1
    if (zcore_ndim(array) < 0) then
      call complain(zcore_e_closed, "the array is not open", error)
      return
    end if
    call f_get_dtype(array%handle, dtype)
    if (n /= zcore_ndim(array) .or. .not. is_of(dtype, kinds, itemsize)) then
      ! The sentence has the place, and what is there.
      if (f_expect(array%handle, to_c(name_of(kinds, itemsize)), int(n, c_int), found) /= 0) then
        call report(found, error)
        return
      end if
    end if
    if (present(start)) then
      if (size(start) /= n) then
        call refuse_length("start", size(start), n, error)
        return
      end if
      first(:n) = reversed(start) - 1
    end if
    if (present(step)) then
      if (size(step) /= n) then
        call refuse_length("step", size(step), n, error)
        return
      end if
      steps(:n) = reversed(step)
    end if
    if (is_write) then
      code = f_write(array%handle, first, lengths(n:1:-1), c_loc(steps), data, c_null_ptr, number(threads), found)
    else
      code = f_read(array%handle, first, lengths(n:1:-1), c_loc(steps), data, c_null_ptr, number(threads), found)
    end if
    if (code /= 0) call report(found, error)
  end subroutine

  logical function is_of(dtype, kinds, itemsize)
    ! Whether the array's elements are what the caller's type holds, in the machine's byte order.
    type(c_dtype), intent(in) :: dtype
    character(len=*), intent(in) :: kinds
    integer, intent(in) :: itemsize
    character :: swapped
    swapped = merge(">", "<", ichar(transfer(1_c_int32_t, "a")) == 1)
    is_of = index(kinds, dtype%kind) /= 0 .and. dtype%itemsize == itemsize .and. dtype%byte_order /= swapped
  end function

  function name_of(kinds, itemsize) result(name)
    ! NumPy's name of the caller's type, such as "f8".
    character(len=*), intent(in) :: kinds
    integer, intent(in) :: itemsize
    character(len=:), allocatable :: name
    name = kinds(1:1) // as_text(int(itemsize, i8))
  end function

  function as_text(n) result(text)
    integer(i8), intent(in) :: n
    character(len=:), allocatable :: text
    character(len=20) :: written
    write (written, "(i0)") n
    text = trim(written)
  end function

  integer(c_int) function number(threads)
    integer, intent(in), optional :: threads
    number = 0
    if (present(threads)) number = int(threads, c_int)
  end function

  pure function reversed(lengths) result(r)
    integer, intent(in) :: lengths(:)
    integer(i8) :: r(size(lengths))
    r = int(lengths(size(lengths):1:-1), i8)
  end function

  pure function to_c(text) result(r)
    character(len=*), intent(in) :: text
    character(kind=c_char) :: r(len_trim(text) + 1)
    integer :: i
    do i = 1, len_trim(text)
      r(i) = text(i:i)
    end do
    r(size(r)) = c_null_char
  end function

  function pointer_to(text, kept) result(r)
    ! NULL for what was left out.
    character(len=*), intent(in), optional :: text
    character(kind=c_char), allocatable, target, intent(out) :: kept(:)
    type(c_ptr) :: r
    r = c_null_ptr
    if (present(text)) then
      kept = to_c(text)
      r = c_loc(kept)
    end if
  end function

  pure function from_c(text) result(r)
    character(kind=c_char), intent(in) :: text(:)
    character(len=:), allocatable :: r
    integer :: i, n
    n = 0
    do while (n < size(text))
      if (text(n + 1) == c_null_char) exit
      n = n + 1
    end do
    allocate(character(len=n) :: r)
    do i = 1, n
      r(i:i) = text(i)
    end do
  end function

  subroutine refuse_length(name, found, expected, error)
    ! Of a list of numbers, one for each dimension.
    character(len=*), intent(in) :: name
    integer, intent(in) :: found, expected
    type(zcore_error), intent(out), optional :: error
    call complain(zcore_e_argument, name // " has " // as_text(int(found, i8)) // " numbers, expected " // &
                  as_text(int(expected, i8)), error)
  end subroutine

  subroutine complain(code, message, error)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: message
    type(zcore_error), intent(out), optional :: error
    if (present(error)) then
      error%code = code
      error%message = message
    else
      write (error_unit, "(2a)") "zcore: ", message
      error stop 1
    end if
  end subroutine

  subroutine report(found, error)
    type(c_error), intent(in) :: found
    type(zcore_error), intent(out), optional :: error
    call complain(found%code, from_c(found%message), error)
    if (present(error)) error%sys_errno = found%sys_errno
  end subroutine

end module zcore
