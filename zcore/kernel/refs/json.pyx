# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The JSON object of a reference set, parsed into columns.

Compiled because sets of a million references are common. As Python objects they take seconds; here, the time to look at
each byte of the document twice.
"""
from binascii import a2b_base64

from zcore.errors import ReferenceFormatError
from zcore.kernel.refs.table import KEY_RULES
from zcore.text.strict_json import STRICT

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memcpy, strlen

from zcore.kernel.memory cimport zc_resized
from zcore.kernel.refs.table cimport WHOLE, ReferenceTable, is_key

cdef extern from *:
    """
    #include <string.h>
    #define ZC_EACH(byte) (0x0101010101010101u * (byte))

    /* How many of eight bytes of a string precede the first quote, backslash or control character. A subtraction
           borrows only from bytes behind the first of these, never from those before it. */
    static inline int zc_n_plain(const uint8_t *text)
    {
        uint64_t word, quote, slash;
        memcpy(&word, text, 8);
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        quote = word ^ ZC_EACH('"');
        slash = word ^ ZC_EACH('\\\\');
        word = (((word - ZC_EACH(0x20)) & ~word) | ((quote - ZC_EACH(1)) & ~quote) | ((slash - ZC_EACH(1)) & ~slash))
               & ZC_EACH(0x80);
        return word == 0 ? 8 : __builtin_ctzll(word) >> 3;
    }
    """
    int zc_n_plain(const uint8_t *text) nogil

cdef enum:
    MAX_DEPTH = 64             # nested lists and objects, including the document itself, as for all metadata documents
    SAFE_DIGITS = 18           # a number of this many digits is below 2**63
    SAMPLE = 64                # references that are used to estimate their number
    MAX_ESTIMATE = 1 << 20

cdef struct Text:              # a document, and how far it has been read
    const uint8_t *data
    int64_t n
    int64_t at

cdef struct String:            # a string of a document, between its quotes
    int64_t start
    int64_t n
    bint is_plain              # without a backslash

cdef struct Bytes:
    const uint8_t *data
    int64_t n


@cython.final
cdef class Scratch:
    """Memory for strings that differ from their form in the document, one at a time."""

    cdef uint8_t *data
    cdef int64_t capacity

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, int64_t n) except -1:
        """Make room for n bytes and keep the content."""
        cdef void *data
        if n >= self.capacity:
            data = zc_resized(self.data, 2 * n + 64, 1)
            if data == NULL:
                raise MemoryError
            self.data = <uint8_t *>data
            self.capacity = 2 * n + 64
        return 0


def members_of(bytes raw not None, check=None, *, ReferenceTable table=None, compact=None, bint takes_null=False):
    """Return the members of a document's JSON object, up to the member with which there are too many.

    References that follow version 1 are read at once, so most documents are parsed in one pass.

    Parameters
    ----------
    raw : bytes
    check : callable, optional
        Takes the values of all other members, as bytes, and raises ValueError for invalid JSON. Without it, these
        values are skipped, and their names may be there twice.
    table, compact, takes_null
        As for `read_references`. Without a table, no references are read.

    Returns
    -------
    (members, n, is_read)
        A dict of the member names of version 1 and "version" to (start, stop) of their values in `raw`; the number
        of all members; and whether the references are in the table.

    Raises
    ------
    ReferenceFormatError
        The document is no JSON object, is nested too deep, or has a name twice.

    >>> members_of(b'{"version": 1, "x/0": ["u"], "refs": {}}')
    ({'version': (12, 13), 'refs': (37, 39)}, 3, False)
    """
    cdef Text text = _text_of(raw)
    cdef String name
    cdef int64_t start
    cdef int64_t n = 0
    cdef Bytes found
    cdef Scratch scratch = Scratch()
    cdef bint is_first_version = False
    cdef bint is_read = False
    members = {}
    others = set()
    _check_utf8(raw)
    if not _takes(&text, c'{'):
        raise _wrong(text.at, "expected a JSON object")
    if not _takes(&text, c'}'):
        while True:
            _string(&text, &name)
            _expect(&text, c':')
            _blanks(&text)
            start = text.at
            n += 1
            _bytes(&text, &name, scratch, &found)
            label = _member(&found)
            if label == "refs" and is_first_version and table is not None and label not in members:
                _read_object(table, &text, compact, takes_null, 2)
                is_read = True
            else:
                _skip(&text, 1)
            if label is not None:
                if label in members:
                    raise _wrong(name.start, f"member {label!r} is there twice")
                members[label] = start, text.at
                is_first_version |= label == "version" and text.at - start == 1 and text.data[start] == c'1'
            elif check is not None:
                label = _str(&found)
                if label in others:
                    raise _wrong(name.start, f"member {label!r:.200} is there twice")
                others.add(label)
                try:
                    check(text.data[start:text.at])
                except ReferenceFormatError as exc:
                    raise _wrong(start, f"member {label!r:.200}: {exc.message}") from None
                except ValueError as exc:
                    raise _wrong(start, f"not JSON: {exc}") from None
            if _ends(&text, c'}'):
                break
    _blanks(&text)
    if text.at < text.n:
        raise _wrong(text.at, "expected nothing behind the object")
    return members, n, is_read


cdef str _member(const Bytes *name):
    """Return the name of a member of version 1, or None."""
    if _is(name, b"refs"):
        return "refs"
    if _is(name, b"version"):
        return "version"
    if _is(name, b"templates"):
        return "templates"
    return "gen" if _is(name, b"gen") else None


cdef inline bint _is(const Bytes *text, const char *word) noexcept nogil:
    return text.n == <int64_t>strlen(word) and memcmp(text.data, word, text.n) == 0


def read_references(ReferenceTable table not None, bytes raw not None, int64_t start, compact, *,
                    bint takes_null=False):
    """Add the references of a JSON object to a table.

    Parameters
    ----------
    raw : bytes
        A document that `members_of` has read.
    start : int
        Where the object begins in `raw`.
    compact : callable
        Returns the bytes that an object as a value stands for, from its text.
    takes_null : bool
        Whether null is allowed instead of a URL; it means the target that the caller names.

    Raises
    ------
    ReferenceFormatError
        A value is no valid reference, or a key appears twice.

    Notes
    -----
    References specification, versions 0 and 1. A string is the value itself, or its base64 form. A list is a URL, or a
    URL, an offset and a length. An object, by common use, is JSON that is the value itself.
    """
    cdef Text text = _text_of(raw)
    cdef int depth = 2 if start else 1
    text.at = start
    _read_object(table, &text, compact, takes_null, depth)


cdef int _read_object(ReferenceTable table, Text *text, compact, bint takes_null, int depth) except -1:
    """Read the object of references. `depth` counts the lists and objects around its members, itself included."""
    cdef String string
    cdef int64_t value, before, n_left
    cdef int64_t sample = text.at
    cdef int64_t n_sample = SAMPLE
    cdef int64_t n_read = 0
    cdef Bytes key
    cdef Scratch of_keys = Scratch()
    cdef Scratch of_values = Scratch()
    table.last_target = -1     # the positions of URLs belong to one document
    if not _takes(text, c'{'):
        raise _wrong(text.at, "expected an object of references")
    if _takes(text, c'}'):
        return 0
    while True:
        _string(text, &string)
        _bytes(text, &string, of_keys, &key)
        if key.n and key.data[key.n - 1] == c'/':
            _complete(&key, of_keys)
        if not is_key(key.data, key.n):
            raise _wrong(string.start, f"{_str(&key)!r:.200} is no key: {KEY_RULES}")
        _expect(text, c':')
        _blanks(text)
        value = text.at
        before = table.n_rows
        _read_value(table, text, key, of_values, compact, takes_null, depth)
        if table.n_rows == before:
            raise _wrong(value, f"key {_str(&key)!r:.200} is there twice")
        n_read += 1
        if n_read == n_sample:
            # Estimated from the latest references: metadata documents, which are longer, mostly come first.
            n_left = (text.n - text.at) * (n_read // 2) // (text.at - sample)
            table._reserve(min(<int64_t>MAX_ESTIMATE, table.n_rows + n_left))
            n_sample *= 4
        elif 2 * n_read == n_sample:
            sample = text.at
        if _ends(text, c'}'):
            return 0


cdef int _complete(Bytes *key, Scratch scratch) except -1:
    """Complete a key as VirtualiZarr shortens it: the chunk of the scalar ``s`` is ``s/`` there, ``s/0`` in Zarr v2."""
    cdef bint is_copied = key.data == scratch.data
    scratch.reserve(key.n + 1)
    if not is_copied:
        memcpy(scratch.data, key.data, key.n)
    key.data = scratch.data
    scratch.data[key.n] = c'0'
    key.n += 1
    return 0


cdef int _read_value(ReferenceTable table, Text *text, Bytes key, Scratch scratch, compact,
                     bint takes_null, int depth) except -1:
    cdef uint8_t opened = text.data[text.at] if text.at < text.n else 0
    cdef int64_t start = text.at
    cdef String string
    cdef Bytes data
    cdef bytes own
    if opened == c'[':
        return _read_extent(table, text, key, scratch, takes_null)
    if opened == c'"':
        _string(text, &string)
        _bytes(text, &string, scratch, &data)
        if data.n >= 7 and memcmp(data.data, <const char *>b"base64:", 7) == 0:
            try:
                own = a2b_base64(data.data[7:data.n], strict_mode=True)
                if (data.n - 7) % 4:
                    raise ValueError("padding that is not needed, which Python takes up to 3.12")
            except ValueError:
                raise _wrong(start, f"key {_str(&key)!r:.200}: not base64") from None
            data.data, data.n = <const uint8_t *>PyBytes_AS_STRING(own), PyBytes_GET_SIZE(own)
    elif opened == c'{':
        _skip(text, depth)
        try:
            own = compact(text.data[start:text.at])
        except ReferenceFormatError as exc:
            raise _wrong(start, f"key {_str(&key)!r:.200}: {exc.message}") from None
        except ValueError as exc:
            raise _wrong(start, f"key {_str(&key)!r:.200}: not JSON: {exc}") from None
        data.data, data.n = <const uint8_t *>PyBytes_AS_STRING(own), PyBytes_GET_SIZE(own)
    else:
        raise _wrong(start, f"key {_str(&key)!r:.200}: expected a string, an object, [url] or [url, offset, length]")
    return table._put_data(key.data, key.n, data.data, data.n)


cdef int _read_extent(ReferenceTable table, Text *text, Bytes key, Scratch scratch, bint takes_null) except -1:
    """Read [url] or [url, offset, length]."""
    cdef int64_t start = text.at
    cdef int64_t offset = 0
    cdef int64_t length = WHOLE
    cdef String url
    cdef Bytes found
    cdef int target
    text.at += 1
    _blanks(text)
    if takes_null and text.n - text.at >= 4 and memcmp(text.data + text.at, <const char *>b"null", 4) == 0:
        text.at += 4
        target = table._number_of(None)
    elif text.at < text.n and text.data[text.at] == c'"':
        if _is_last_url(table, text):
            target = table.last_target
            text.at += table.n_last_url + 2
        else:
            _string(text, &url)
            _bytes(text, &url, scratch, &found)
            target = table._number_of(_str(&found))
            table.last_target, table.last_url, table.n_last_url = target, url.start, url.n
    else:
        raise _wrong(start, f"key {_str(&key)!r:.200}: expected [url] or [url, offset, length]")
    if not _takes(text, c']'):
        _expect(text, c',')
        offset = _number(text, key)
        if _takes(text, c']'):
            raise _wrong(start, f"key {_str(&key)!r:.200}: expected [url] or [url, offset, length], found two items")
        _expect(text, c',')
        length = _number(text, key)
        _expect(text, c']')
        if offset > INT64_MAX - length:
            raise _wrong(start, f"key {_str(&key)!r:.200}: ends beyond byte 2**63")
    return table._put(key.data, key.n, target, offset, length)


cdef bint _is_last_url(ReferenceTable table, const Text *text) noexcept nogil:
    """Whether the URL here is written exactly like that of the previous reference, as it mostly is."""
    cdef const uint8_t *url = text.data + text.at + 1
    return (table.last_target >= 0 and text.n - text.at >= table.n_last_url + 2 and url[table.n_last_url] == c'"'
            and memcmp(url, text.data + table.last_url, table.n_last_url) == 0)


cdef int64_t _number(Text *text, Bytes key) except -1:
    """Read an offset or a length."""
    cdef int64_t number = 0
    cdef int64_t start, at, n_digits
    cdef int digit
    _blanks(text)
    start = at = text.at
    while at < text.n and c'0' <= text.data[at] <= c'9':
        digit = text.data[at] - c'0'
        if at - start >= SAFE_DIGITS and number > (INT64_MAX - digit) // 10:
            raise _wrong(start, f"key {_str(&key)!r:.200}: offset and length are numbers below 2**63")
        number = 10 * number + digit
        at += 1
    text.at = at
    n_digits = at - start
    _blanks(text)
    if n_digits == 0 or (text.data[start] == c'0' and n_digits > 1) or (
            text.at < text.n and text.data[text.at] != c',' and text.data[text.at] != c']'):
        raise _wrong(start, f"key {_str(&key)!r:.200}: offset and length are whole numbers from 0 on, found "
                            f"{_shown(text, start)}")
    return number


# JSON by RFC 8259

cdef Text _text_of(bytes raw):
    cdef Text text
    text.data = <const uint8_t *>PyBytes_AS_STRING(raw)
    text.n = PyBytes_GET_SIZE(raw)
    text.at = 0
    return text


cdef _wrong(int64_t at, message):
    return ReferenceFormatError(f"byte {at} of the reference set: {message}")


cdef str _shown(const Text *text, int64_t start):
    cdef int64_t stop = start
    while stop < text.n and stop < start + 40 and text.data[stop] not in b",]}":
        stop += 1
    return repr(text.data[start:stop].decode(errors="replace").strip())


cdef int _check_utf8(bytes raw) except -1:
    """Check that the whole document is UTF-8, so that its parts need no check."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef int64_t n = PyBytes_GET_SIZE(raw)
    cdef int64_t i
    cdef uint8_t bits = 0
    for i in range(n):
        bits |= data[i]
    if bits & 0x80:
        try:
            raw.decode()
        except UnicodeDecodeError as exc:
            raise _wrong(exc.start, "not UTF-8") from None
    return 0


# Loops keep the position in a local variable. Otherwise the compiler would store it for each byte, because bytes may
# alias any variable.

cdef inline void _blanks(Text *text) noexcept nogil:
    cdef int64_t at = text.at
    while at < text.n and text.data[at] <= c' ' and text.data[at] in (c' ', c'\n', c'\r', c'\t'):
        at += 1
    text.at = at


cdef inline bint _takes(Text *text, uint8_t mark) noexcept nogil:
    """Whether this mark is next; if so, move behind it."""
    _blanks(text)
    if text.at < text.n and text.data[text.at] == mark:
        text.at += 1
        return True
    return False


cdef inline int _expect(Text *text, uint8_t mark) except -1:
    _blanks(text)
    if text.at >= text.n or text.data[text.at] != mark:
        raise _wrong(text.at, f"expected {chr(mark)!r}, found {_shown(text, text.at)}")
    text.at += 1
    return 0


cdef inline bint _ends(Text *text, uint8_t bracket) except -1:
    """Whether the list or object ends behind this item; otherwise another item follows."""
    if _takes(text, bracket):
        return True
    _expect(text, c',')
    return False


cdef int _string(Text *text, String *string) except -1:
    """Read over a string."""
    cdef uint8_t found
    cdef int n_plain
    cdef int64_t at
    _blanks(text)
    at = text.at
    if at >= text.n or text.data[at] != c'"':
        raise _wrong(at, f"expected a string, found {_shown(text, at)}")
    at += 1
    string.start = at
    string.is_plain = True
    while at < text.n:
        n_plain = 8
        while n_plain == 8 and text.n - at >= 8:
            n_plain = zc_n_plain(text.data + at)
            at += n_plain
        if at == text.n:
            break
        found = text.data[at]
        if found == c'"':
            string.n = at - string.start
            text.at = at + 1
            return 0
        if found < 0x20:
            raise _wrong(at, "a control character in a string")
        if found == c'\\':
            string.is_plain = False
            at += 1
        at += 1
    raise _wrong(string.start, "a string that does not end")


cdef int _bytes(const Text *text, const String *string, Scratch scratch, Bytes *found) except -1:
    """Find the text of a string in UTF-8, in the document or in the scratch."""
    cdef bytes own
    found.data, found.n = text.data + string.start, string.n
    if string.is_plain:
        return 0
    scratch.reserve(string.n)
    found.n = _unescape(found.data, string.n, scratch.data)
    found.data = scratch.data
    if found.n < 0:
        # An escape of six characters becomes at most three bytes.
        own = _decoded(text, string)
        found.n = PyBytes_GET_SIZE(own)
        memcpy(scratch.data, PyBytes_AS_STRING(own), found.n)
    return 0


cdef int64_t _unescape(const uint8_t *string, int64_t n, uint8_t *out) noexcept nogil:
    """Write a string without its escapes and return its number of bytes; -1 for an escape of more than a character.

    Some writers put a backslash before each ``/``, so each of a million strings may have such an escape.
    """
    cdef int64_t at = 0
    cdef int64_t n_out = 0
    while at < n:
        out[n_out] = string[at]
        if string[at] == c'\\':
            # It never is the last character: it would escape the quote.
            at += 1
            out[n_out] = _escaped(string[at])
            if out[n_out] == 0:
                return -1
        at += 1
        n_out += 1
    return n_out


cdef inline uint8_t _escaped(uint8_t letter) noexcept nogil:
    """Return the character that a letter stands for behind a backslash, or 0."""
    if letter in b'"\\/':
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


cdef bytes _decoded(const Text *text, const String *string):
    """Return the text of a string with any escapes, in UTF-8."""
    try:
        return STRICT.decode(text.data[string.start - 1:string.start + string.n + 1].decode()).encode()
    except UnicodeEncodeError:
        raise _wrong(string.start, "half of a pair of surrogates") from None
    except ValueError:
        raise _wrong(string.start, "a string that is not JSON: a backslash before a character that it cannot "
                                   "escape") from None


cdef str _str(const Bytes *found):
    return PyUnicode_DecodeUTF8(<const char *>found.data, found.n, NULL)


cdef int64_t _behind_string(const Text *text, int64_t at) except -1:
    """Return the end of a string that begins here. The string is not decoded."""
    cdef int64_t start = at + 1
    cdef int64_t before
    cdef const uint8_t *quote
    at = start
    while True:
        quote = <const uint8_t *>memchr(text.data + at, c'"', text.n - at)
        if quote == NULL:
            raise _wrong(start, "a string that does not end")
        at = quote - text.data
        before = at
        while before > start and text.data[before - 1] == c'\\':
            before -= 1
        at += 1
        if (at - 1 - before) % 2 == 0:
            return at


cdef inline bint _is_mark(uint8_t found) noexcept nogil:
    return found in (c' ', c'\n', c'\r', c'\t', c',', c':', c'"', c'[', c']', c'{', c'}')


cdef int _skip(Text *text, int outer) except -1:
    """Skip a value that lies in that many lists and objects.

    Outside strings, only brackets are checked: a caller that needs the value parses it again.
    """
    cdef int depth = 0
    cdef int64_t start, at
    cdef uint8_t found
    cdef uint8_t opened[MAX_DEPTH]
    _blanks(text)
    start = at = text.at
    while at < text.n:
        found = text.data[at]
        if found == c'"':
            at = _behind_string(text, at)
        elif found == c'[' or found == c'{':
            if depth == MAX_DEPTH - outer:
                raise _wrong(at, f"lists and objects are nested deeper than {MAX_DEPTH}")
            opened[depth] = found
            depth += 1
            at += 1
        elif depth and (found == c']' or found == c'}'):
            # In ASCII a closing bracket comes two behind its opening bracket.
            if found - opened[depth - 1] != 2:
                raise _wrong(at, f"{chr(found)!r} closes {chr(opened[depth - 1])!r}")
            depth -= 1
            at += 1
        elif depth:
            at += 1
        else:
            # A number, true, false or null.
            while at < text.n and not _is_mark(text.data[at]):
                at += 1
            break
        if depth == 0:
            break
    text.at = at
    if depth or at == start:
        raise _wrong(start, "expected a value" if not depth else "a list or an object that does not end")
    return 0
