# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The bytes of an object of Python.

Compiled, for the compiled modules: they hold the bytes of their arguments with it. Typed memoryviews would do the same,
with fifty times the code.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

cdef uint8_t _nothing = 0


@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class Bytes:
    """Contiguous bytes of a bytes-like object, held as long as this object lives.

    Raises : TypeError, BufferError or ValueError, if there are none, or if they must be writable and are not.
    """

    def __cinit__(self, source not None, bint writable=False):
        cdef int flags = PyBUF_WRITABLE if writable else PyBUF_SIMPLE
        PyObject_GetBuffer(source, &self.view, flags)
        self.data = <uint8_t *>self.view.buf if self.view.len else &_nothing
        self.n = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)
