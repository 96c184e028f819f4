"""The locks of one node's objects, as Python objects."""
from zcore.kernel.io.locks cimport LockTable


cdef class ObjectLocks:
    cdef LockTable table
    cdef readonly object directory         # path of the document's directory, None for a store without files
    cdef readonly object document          # name of the document in it
    cdef readonly object file              # lock file that excludes other processes, or None
    cdef object __weakref__

    cdef void _reset(self) noexcept
