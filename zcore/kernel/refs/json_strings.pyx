# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Encodings in JSON strings: escapes and base64.

Compiled because each of a million strings may contain an escape: some writers put a backslash before each ``/``.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef enum:
    NO_DIGIT = 64              # no base64 digit

cdef uint8_t digits[256]       # value of each base64 digit


cdef const uint8_t *alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef int code
for code in range(256):
    digits[code] = NO_DIGIT
for code in range(64):
    digits[alphabet[code]] = <uint8_t>code


cdef int64_t unescape(const uint8_t *string, int64_t n, uint8_t *out) noexcept nogil:
    """Decode by RFC 8259, section 7. The two halves of a surrogate pair become one character."""
    cdef int64_t at = 0
    cdef int64_t n_out = 0
    cdef int64_t point, low
    cdef uint8_t found
    while at < n:
        found = string[at]
        at += 1
        if found != c'\\':
            out[n_out] = found
            n_out += 1
            continue
        found = string[at]
        at += 1
        if found != c'u':
            found = _sign_of(found)
            if found == 0:
                return NO_ESCAPE
            out[n_out] = found
            n_out += 1
            continue
        point = _point_at(string, n, at)
        at += 4
        if point < 0:
            return NO_ESCAPE
        if 0xD800 <= point < 0xE000:
            low = -1
            if point < 0xDC00 and at + 1 < n and string[at] == c'\\' and string[at + 1] == c'u':
                low = _point_at(string, n, at + 2)
            if not 0xDC00 <= low < 0xE000:
                return HALF_PAIR
            at += 6
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        n_out += _encode(<uint32_t>point, out + n_out)
    return n_out


cdef uint8_t _sign_of(uint8_t letter) noexcept nogil:
    """Return the character of an escape's letter, or 0."""
    if letter == c'"' or letter == c'\\' or letter == c'/':
        return letter
    if letter == c'n':
        return c'\n'
    if letter == c't':
        return c'\t'
    if letter == c'r':
        return c'\r'
    if letter == c'b':
        return c'\b'
    return c'\f' if letter == c'f' else 0


cdef int64_t _point_at(const uint8_t *string, int64_t n, int64_t at) noexcept nogil:
    """Return the number of four hexadecimal digits, or -1."""
    cdef int64_t point = 0
    cdef uint8_t digit
    cdef int64_t i
    if at > n - 4:
        return -1
    for i in range(at, at + 4):
        digit = string[i]
        if c'0' <= digit <= c'9':
            digit -= c'0'
        elif c'a' <= digit | 0x20 <= c'f':
            digit = (digit | 0x20) - c'a' + 10
        else:
            return -1
        point = point << 4 | digit
    return point


cdef int64_t _encode(uint32_t point, uint8_t *out) noexcept nogil:
    """Write a character in UTF-8 and return its number of bytes."""
    if point < 0x80:
        out[0] = <uint8_t>point
        return 1
    if point < 0x800:
        out[0] = <uint8_t>(0xC0 | point >> 6)
        out[1] = <uint8_t>(0x80 | point & 0x3F)
        return 2
    if point < 0x10000:
        out[0] = <uint8_t>(0xE0 | point >> 12)
        out[1] = <uint8_t>(0x80 | point >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | point & 0x3F)
        return 3
    out[0] = <uint8_t>(0xF0 | point >> 18)
    out[1] = <uint8_t>(0x80 | point >> 12 & 0x3F)
    out[2] = <uint8_t>(0x80 | point >> 6 & 0x3F)
    out[3] = <uint8_t>(0x80 | point & 0x3F)
    return 4


cdef int64_t decode_base64(const uint8_t *text, int64_t n, uint8_t *out) noexcept nogil:
    """Decode by RFC 4648, section 4: no other characters, padding required. Unused last bits are ignored."""
    cdef int64_t n_padding = 0
    cdef int64_t n_out = 0
    cdef int64_t i
    cdef uint32_t word
    cdef uint8_t a, b, c, d
    if n % 4:
        return NO_BASE64
    while n_padding < min(n, 2) and text[n - 1 - n_padding] == c'=':
        n_padding += 1
    for i in range(0, n, 4):
        a, b, c, d = digits[text[i]], digits[text[i + 1]], digits[text[i + 2]], digits[text[i + 3]]
        if i == n - 4:
            if n_padding:
                d = 0
            if n_padding == 2:
                c = 0
        if (a | b | c | d) & NO_DIGIT:
            return NO_BASE64
        word = <uint32_t>a << 18 | <uint32_t>b << 12 | <uint32_t>c << 6 | d
        out[n_out] = <uint8_t>(word >> 16)
        out[n_out + 1] = <uint8_t>(word >> 8 & 0xFF)
        out[n_out + 2] = <uint8_t>(word & 0xFF)
        n_out += 3
    return n_out - n_padding
