"""What stands for other bytes in strings of JSON: escapes, and base64."""
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    NO_ESCAPE = -1             # a backslash before something else than RFC 8259 has, section 7
    HALF_PAIR = -2             # a surrogate alone, for which UTF-8 has nothing
    NO_BASE64 = -3

# Writes a string without its escapes, as UTF-8: how many bytes, at most n, or a code from above. `string` is what
# stands between the quotes, where a backslash is not the last.
cdef int64_t unescape(const uint8_t *string, int64_t n, uint8_t *out) noexcept nogil
# Writes what base64 stands for: how many bytes, at most n, or NO_BASE64. `out` may be where the text is.
cdef int64_t decode_base64(const uint8_t *text, int64_t n, uint8_t *out) noexcept nogil
