"""The document of an open array, while its objects are read."""
from zcore.kernel.select.open_array cimport Opened


# Opens the document: a descriptor, if it is the one that the array was opened by; else -1. While that is open no other
# file can have its identity, however young it is.
cdef int document_hold(const Opened *opened) noexcept nogil
# Whether it stands at its whole path. (Another directory may have got the name of the one that a plan has open.)
cdef bint document_stands(const Opened *opened) noexcept nogil
# Whether no other document can have got its identity since it was written.
cdef bint document_is_old(const Opened *opened) noexcept nogil
