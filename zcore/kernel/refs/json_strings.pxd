"""Encodings in JSON strings: escapes and base64."""
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    NO_ESCAPE = -1             # an escape that RFC 8259, section 7, does not have
    HALF_PAIR = -2             # half of a surrogate pair, which has no UTF-8 form
    NO_BASE64 = -3

# Writes a string without its escapes, as UTF-8: returns the number of bytes, at most n, or a code from above. `string`
# is the text between the quotes and does not end in a single backslash.
cdef int64_t unescape(const uint8_t *string, int64_t n, uint8_t *out) noexcept nogil
# Writes the bytes of base64 text: returns their number, at most n, or NO_BASE64. `out` may be `text`.
cdef int64_t decode_base64(const uint8_t *text, int64_t n, uint8_t *out) noexcept nogil
