"""The metadata document of an open array, while its objects are read."""
from zcore.kernel.select.open_array cimport Opened


# Opens the document: a descriptor, if it is the document that the array was opened with; else -1. While the descriptor
# is open, no other file can have the document's identity, however young it is.
cdef int document_hold(const Opened *opened) noexcept nogil
# Whether the document is at its whole path. (Another directory may have got the name of the one that a plan has open.)
cdef bint document_stands(const Opened *opened) noexcept nogil
# Whether the document is so old that no other document can have its identity.
cdef bint document_is_old(const Opened *opened) noexcept nogil
