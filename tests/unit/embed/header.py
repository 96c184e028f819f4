"""The functions of `zcore.h` by their addresses, for tests without a compiler."""
import ctypes as c

import numpy as np

import zcore.embed


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("sys_errno", c.c_int), ("message", c.c_char * 1000)]


class DType(c.Structure):
    _fields_ = [("kind", c.c_char), ("byte_order", c.c_char), ("itemsize", c.c_int64), ("name", c.c_char * 32)]


_lengths = c.POINTER(c.c_int64)
_error = c.POINTER(Error)
_TYPES = {
    "open": (c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, _error),
    "create": (c.c_void_p, c.c_char_p, c.c_int, _lengths, _lengths, c.c_char_p, c.c_char_p, _error),
    "from_object": (c.c_void_p, c.py_object, _error),
    "close": (None, c.c_void_p),
    "ndim": (c.c_int, c.c_void_p),
    "shape": (None, c.c_void_p, _lengths),
    "chunk_shape": (None, c.c_void_p, _lengths),
    "object_shape": (None, c.c_void_p, _lengths),
    "get_dtype": (None, c.c_void_p, c.POINTER(DType)),
    "read": (c.c_int, c.c_void_p, _lengths, _lengths, _lengths, c.c_void_p, _lengths, c.c_int, _error),
    "write": (c.c_int, c.c_void_p, _lengths, _lengths, _lengths, c.c_void_p, _lengths, c.c_int, _error),
    "resize": (c.c_int, c.c_void_p, _lengths, _error),
    "refresh": (c.c_int, c.c_void_p, _error),
    "get_attrs": (c.c_int64, c.c_void_p, c.c_char_p, c.c_int64, _error),
    "set_attr": (c.c_int, c.c_void_p, c.c_char_p, c.c_char_p, _error),
    "sync": (c.c_int, c.c_void_p, _error),
    "writer_open": (c.c_void_p, c.c_void_p, c.c_int, c.c_char_p, _error),
    "writer_append": (c.c_int, c.c_void_p, c.c_void_p, c.c_int64, _lengths, _error),
    "writer_write": (c.c_int, c.c_void_p, _lengths, _lengths, c.c_void_p, _lengths, _error),
    "writer_flush": (c.c_int, c.c_void_p, _error),
    "writer_close": (c.c_int, c.c_void_p, _error),
    "writer_abort": (c.c_int, c.c_void_p, _error),
    "writer_n_given": (c.c_int64, c.c_void_p),
    "expect": (c.c_int, c.c_void_p, c.c_char_p, c.c_int, _error),
}
call = {name: (c.PYFUNCTYPE if name == "from_object" else c.CFUNCTYPE)(*types)(zcore.embed.addresses[f"zcore_{name}"])
        for name, types in _TYPES.items()}


class CallError(Exception):
    """A function has failed: `code`, and the sentence."""

    def __init__(self, error):
        super().__init__(error.message.decode())
        self.code = error.code
        self.sys_errno = error.sys_errno


def numbers(values):
    """Return int64 values for C, or None."""
    return None if values is None else (c.c_int64 * len(values))(*values)


def asked(name, *arguments):
    """Call a function with an error behind its arguments; raise CallError where it says so."""
    error = Error(code=-7)
    result = call[name](*arguments, error)
    if error.code:
        assert result in (None, -1)
        raise CallError(error)
    assert error.message == b""
    return result


class Handle:
    """An open array, with the calls as methods; NumPy arrays are the caller's memory."""

    def __init__(self, place, mode="r+", options=None):
        self.number = asked("open", None if place is None else str(place).encode(), mode.encode(), options)

    @classmethod
    def of(cls, number):
        handle = cls.__new__(cls)
        handle.number = number
        return handle

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        call["close"](self.number)

    def move(self, name, start, count, data, step=None, strides=None, threads=0):
        # `data` stays: it may be the only reference to the memory.
        address = data if isinstance(data, int | None) else data.ctypes.data
        asked(name, self.number, numbers(start), numbers(count), numbers(step), address, numbers(strides), threads)

    def read(self, start, count, dtype="f4", **keywords):
        data = np.full(count, 77, dtype)
        self.move("read", start, count, data, **keywords)
        return data

    def write(self, start, data, **keywords):
        self.move("write", start, data.shape, np.ascontiguousarray(data), **keywords)

    def lengths(self, name):
        found = (c.c_int64 * 64)()
        call[name](self.number, found)
        return tuple(found[:call["ndim"](self.number)])


class WriterHandle:
    """A writer of an open array, with the calls as methods."""

    def __init__(self, handle, axis=0, options=None):
        self.number = asked("writer_open", handle.number, axis, options)

    def append(self, data, n_frames, strides=None):
        asked("writer_append", self.number, data.ctypes.data, n_frames, numbers(strides))

    def write(self, start, data, strides=None):
        asked("writer_write", self.number, numbers(start), numbers(data.shape), data.ctypes.data, numbers(strides))

    def flush(self):
        asked("writer_flush", self.number)

    def close(self):
        asked("writer_close", self.number)

    def abort(self):
        asked("writer_abort", self.number)

    @property
    def n_given(self):
        return call["writer_n_given"](self.number)
