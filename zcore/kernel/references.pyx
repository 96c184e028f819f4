# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""References in columns, and the reader of the JSON object that lists them.

Compiled because sets of a million references are common: as objects of Python they need half a gigabyte and seconds,
here 32 bytes and the key, and the time it takes to look at each byte of the document twice.
"""
import os
from binascii import a2b_base64

from zcore.errors import ReferenceFormatError
from zcore.kernel.fileio import TEMP_PREFIX

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

cdef enum:
    MIN_ROWS = 64
    MAX_ROWS = 0x7FFFFFFE
    MAX_KEY_NBYTES = 1 << 16
    MIN_UNUSED = 1 << 20
    MAX_DEPTH = 64             # nested lists and objects, the document itself among them, as in any metadata document

cdef extern from *:
    """
    #include <string.h>
    /* Both halves of a product. Which keys meet in one slot depends on the seed, so that nobody can choose them. */
    static inline uint64_t zc_mix(uint64_t a, uint64_t b)
    {
        __uint128_t product = (__uint128_t)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    static inline uint64_t zc_hash_bytes(uint64_t seed, const uint8_t *data, int64_t n)
    {
        uint64_t h = seed ^ (uint64_t)n, word;
        for (; n >= 8; n -= 8, data += 8) {
            memcpy(&word, data, 8);
            h = zc_mix(h ^ word, 0x9E3779B97F4A7C15u);
        }
        word = 0;
        memcpy(&word, data, (size_t)n);
        return zc_mix(h ^ word, 0xD6E8FEB86659FD93u ^ seed);
    }
    """
    uint64_t zc_hash_bytes(uint64_t seed, const uint8_t *data, int64_t n) nogil


cdef bytes _temporary = TEMP_PREFIX.encode()
cdef const char *temporary = _temporary
cdef int64_t n_temporary = len(_temporary)

_KEY_RULES = (f"it is empty, has an empty part, '.', '..', a part that begins with {TEMP_PREFIX!r}, NUL, or more than "
              f"{MAX_KEY_NBYTES} bytes")


cdef class ReferenceTable:
    """Keys, and where their values lie.

    Rows are in the order in which keys were met first; a key that is put again gets another value.

    Examples
    --------
    >>> table = ReferenceTable()
    >>> table.put(b"x/0", "data.nc", 100, 20)
    >>> table.put_data(b".zgroup", b"{}")
    >>> table.find(b"x/0"), table.find(b".zgroup"), table.find(b"x")
    (('data.nc', 100, 20), b'{}', None)
    """

    def __cinit__(self):
        self.rows = NULL
        self.keys = self.data = NULL
        self.slots = self.order = NULL
        self.seed = int.from_bytes(os.urandom(8))
        self._targets = []
        self._target_of = {}

    def __dealloc__(self):
        free(self.rows)
        free(self.keys)
        free(self.data)
        free(self.slots)
        free(self.order)

    def __len__(self):
        return self.n_rows - self.n_removed

    @property
    def targets(self):
        """The URLs, each of them once: a list of str, or None for the one that the caller names."""
        return list(self._targets)

    @property
    def nbytes(self):
        """Bytes of memory that the columns take."""
        return (self.capacity * <int64_t>sizeof(Reference) + self.keys_capacity + self.data_capacity
                + self.n_slots * <int64_t>sizeof(int))

    def set_targets(self, list targets not None):
        """Give all targets other URLs, in their order."""
        assert len(targets) == len(self._targets)
        self._targets = targets
        self._target_of = {url: i for i, url in enumerate(targets)}

    # making

    def put(self, bytes key not None, url, int64_t offset, length):
        """Let a key stand for bytes of a target; ``length`` is None for all of it."""
        cdef int64_t n_bytes = length if length is not None else WHOLE
        cdef int target = self._number_of(url)
        self._put(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), target, offset, n_bytes)

    def put_many(self, list keys not None, list urls not None, const Py_ssize_t[::1] url_index,
                 const int64_t[::1] offsets, const int64_t[::1] lengths):
        """Let each of several keys, str, stand for bytes of a target.

        Parameters
        ----------
        keys : list of str
        urls : list of str
        url_index : array of intp
            For each key the number of its URL.
        offsets, lengths : array of int64
            A length of -1 is all of the target.

        Raises
        ------
        ReferenceFormatError
            A text is no key.
        """
        cdef list targets = [self._number_of(url) for url in urls]
        cdef Py_ssize_t i
        cdef bytes key
        cdef const uint8_t *text
        cdef int target
        assert len(keys) == len(url_index) == len(offsets) == len(lengths)
        for i in range(len(keys)):
            try:
                key = (<str>keys[i]).encode()
            except UnicodeEncodeError:
                raise ReferenceFormatError(f"{keys[i]!r:.200} is no key: half of a pair of surrogates") from None
            text = <const uint8_t *>PyBytes_AS_STRING(key)
            if not _is_key(text, PyBytes_GET_SIZE(key)):
                raise ReferenceFormatError(f"{keys[i]!r:.200} is no key, and gen makes it: {_KEY_RULES}")
            target = targets[url_index[i]]
            if lengths[i] > 0 and offsets[i] > INT64_MAX - lengths[i]:
                raise ReferenceFormatError(f"key {keys[i]!r:.200}, which gen makes, ends beyond byte 2**63")
            self._put(text, PyBytes_GET_SIZE(key), target, offsets[i], lengths[i])

    def put_data(self, bytes key not None, bytes data not None):
        """Let a key stand for bytes that are at hand."""
        self._put_data(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                       <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    def remove(self, bytes key not None):
        """Let a key stand for nothing; whether it stood for something."""
        cdef int64_t i = self._row_of(key)
        if i >= 0:
            self._leave(&self.rows[i])
            self.rows[i].target = REMOVED
            self.n_removed += 1
        return i >= 0

    cdef int _put_data(self, const uint8_t *key, int64_t n_key, const uint8_t *data, int64_t n_data) except -1:
        cdef int64_t at
        if self.n_unused > MIN_UNUSED and 2 * self.n_unused > self.n_data:
            self._repack()
        at = self.n_data
        self.data = <uint8_t *>_grown(self.data, &self.data_capacity, at + n_data, 1)
        memcpy(self.data + at, data, n_data)
        self.n_data += n_data
        return self._put(key, n_key, INLINE, at, n_data)

    cdef int _put(self, const uint8_t *key, int64_t n_key, int target, int64_t offset, int64_t n_bytes) except -1:
        cdef int64_t i = self.row_of(key, n_key)
        cdef int64_t slot
        cdef Reference *row
        if i < 0:
            if self.n_rows >= MAX_ROWS:
                raise ReferenceFormatError(f"a reference set has at most {MAX_ROWS} references here")
            i = self.n_rows
            self.rows = <Reference *>_grown(self.rows, &self.capacity, i + 1, sizeof(Reference))
            self.keys = <uint8_t *>_grown(self.keys, &self.keys_capacity, self.n_keys + n_key, 1)
            if 3 * (i + 1) > 2 * self.n_slots:
                self._grow_slots()
            memcpy(self.keys + self.n_keys, key, n_key)
            row = &self.rows[i]
            row.key = self.n_keys
            row.n_key = <int>n_key
            row.target = INLINE
            row.n_bytes = 0
            self.n_keys += n_key
            self.n_rows += 1
            slot = <int64_t>(zc_hash_bytes(self.seed, key, n_key) & <uint64_t>(self.n_slots - 1))
            while self.slots[slot] >= 0:
                slot = (slot + 1) & (self.n_slots - 1)
            self.slots[slot] = <int>i
            free(self.order)
            self.order = NULL
        row = &self.rows[i]
        self._leave(row)
        self.n_removed -= row.target == REMOVED
        row.target = target
        row.offset = offset
        row.n_bytes = n_bytes
        return 0

    cdef void _leave(self, const Reference *row) noexcept nogil:
        if row.target == INLINE:
            self.n_unused += row.n_bytes

    cdef int _repack(self) except -1:
        """Give the memory back of data that no key has any more; else a chunk written often would need it each time."""
        cdef int64_t capacity = self.n_data - self.n_unused
        cdef uint8_t *data = <uint8_t *>malloc(capacity + 1)
        cdef int64_t at = 0
        cdef int64_t i
        cdef Reference *row
        if data == NULL:
            raise MemoryError
        for i in range(self.n_rows):
            row = &self.rows[i]
            if row.target == INLINE:
                memcpy(data + at, self.data + row.offset, row.n_bytes)
                row.offset = at
                at += row.n_bytes
        free(self.data)
        self.data = data
        self.n_data = at
        self.data_capacity = capacity + 1
        self.n_unused = 0
        return 0

    cdef int _grow_slots(self) except -1:
        cdef int64_t n_slots = max(<int64_t>MIN_ROWS, 2 * self.n_slots)
        cdef int *slots = <int *>malloc(n_slots * sizeof(int))
        cdef int64_t i, slot
        if slots == NULL:
            raise MemoryError
        for slot in range(n_slots):
            slots[slot] = -1
        for i in range(self.n_rows):
            slot = <int64_t>(zc_hash_bytes(self.seed, self.keys + self.rows[i].key, self.rows[i].n_key)
                             & <uint64_t>(n_slots - 1))
            while slots[slot] >= 0:
                slot = (slot + 1) & (n_slots - 1)
            slots[slot] = <int>i
        free(self.slots)
        self.slots = slots
        self.n_slots = n_slots
        return 0

    cdef int _number_of(self, url) except -1:
        """The number of a target."""
        found = self._target_of.get(url)
        if found is None:
            if len(self._targets) >= MAX_ROWS:
                raise ReferenceFormatError(f"a reference set has at most {MAX_ROWS} targets here")
            found = self._target_of[url] = len(self._targets)
            self._targets.append(url)
        return found

    # asking

    cdef int64_t row_of(self, const uint8_t *key, int64_t n_key) noexcept nogil:
        cdef int64_t slot
        cdef int64_t i
        if self.n_slots == 0:
            return -1
        slot = <int64_t>(zc_hash_bytes(self.seed, key, n_key) & <uint64_t>(self.n_slots - 1))
        while True:
            i = self.slots[slot]
            if i < 0 or (self.rows[i].n_key == n_key and memcmp(self.keys + self.rows[i].key, key, n_key) == 0):
                return i
            slot = (slot + 1) & (self.n_slots - 1)

    def find(self, bytes key not None):
        """Return the value of a key: bytes, or ``(url, offset, length)``; None when it has none.

        The length is None where all of the target is meant.
        """
        cdef int64_t i = self._row_of(key)
        return None if i < 0 else self._value(i)

    cdef int64_t _row_of(self, bytes key) except? -2:
        """The row of a key that stands for something, or -1."""
        cdef int64_t i = self.row_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        return -1 if i >= 0 and self.rows[i].target == REMOVED else i

    cdef object _value(self, int64_t i):
        cdef const Reference *row = &self.rows[i]
        if row.target == INLINE:
            return PyBytes_FromStringAndSize(<const char *>self.data + row.offset, row.n_bytes)
        return self._targets[row.target], row.offset, None if row.n_bytes == WHOLE else row.n_bytes

    def __contains__(self, bytes key not None):
        return self._row_of(key) >= 0

    def items(self):
        """Iterate over (key, value) in the order of the rows; see `find`."""
        cdef int64_t i
        for i in range(self.n_rows):
            if self.rows[i].target != REMOVED:
                yield self._key(i), self._value(i)

    cdef bytes _key(self, int64_t i):
        return PyBytes_FromStringAndSize(<const char *>self.keys + self.rows[i].key, self.rows[i].n_key)

    # listing

    def list_dir(self, bytes prefix not None):
        """Return the keys and the prefixes right below a prefix, two sorted lists of bytes.

        >>> table = ReferenceTable()
        >>> for key in b"a", b"a/b", b"a/c/0", b"a/c/1", b"b":
        ...     table.put_data(key, b"")
        >>> table.list_dir(b""), table.list_dir(b"a/")
        (([b'a', b'b'], [b'a/']), ([b'a/b'], [b'a/c/']))
        """
        cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(prefix)
        cdef int64_t n_prefix = PyBytes_GET_SIZE(prefix)
        cdef const Reference *row
        cdef const uint8_t *key
        cdef int64_t i, n
        cdef bint is_below
        keys, prefixes = [], []
        self._sort()
        i = self._first_from(text, n_prefix)
        while i < self.n_rows:
            row = &self.rows[self.order[i]]
            key = self.keys + row.key
            if row.n_key < n_prefix or memcmp(key, text, n_prefix) != 0:
                break
            n = n_prefix
            while n < row.n_key and key[n] != c'/':
                n += 1
            is_below = n < row.n_key
            i += 1
            if row.target == REMOVED or n == n_prefix:
                continue
            if not is_below:
                keys.append(PyBytes_FromStringAndSize(<const char *>key, n))
                continue
            below = PyBytes_FromStringAndSize(<const char *>key, n + 1)
            prefixes.append(below)
            # Keys that begin so stand together: the first that does not is found without a look at them.
            past = below[:n] + b"0"
            i = self._first_from(<const uint8_t *>PyBytes_AS_STRING(past), n + 1)
        return keys, prefixes

    def list_keys(self, bytes prefix not None, bytes start not None, int64_t n):
        """Return the first n keys below a prefix that do not come before `start`, sorted.

        >>> table = ReferenceTable()
        >>> for key in b"a", b"a/b", b"a/c/0", b"a/c/1", b"b":
        ...     table.put_data(key, b"")
        >>> table.list_keys(b"a/", b"a/", 2), table.list_keys(b"a/", b"a/c/1", 2)
        ([b'a/b', b'a/c/0'], [b'a/c/1'])
        """
        cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(prefix)
        cdef int64_t n_prefix = PyBytes_GET_SIZE(prefix)
        cdef const Reference *row
        cdef int64_t i
        keys = []
        self._sort()
        i = self._first_from(<const uint8_t *>PyBytes_AS_STRING(start), PyBytes_GET_SIZE(start))
        while i < self.n_rows and len(keys) < n:
            row = &self.rows[self.order[i]]
            if row.n_key < n_prefix or memcmp(self.keys + row.key, text, n_prefix) != 0:
                break
            if row.target != REMOVED:
                keys.append(self._key(self.order[i]))
            i += 1
        return keys

    cdef int _sort(self) except -1:
        """Sort the rows by their keys, once."""
        cdef int64_t i
        cdef int *order
        cdef int *other
        if self.order != NULL:
            return 0
        order = <int *>malloc((self.n_rows + 1) * sizeof(int))
        other = <int *>malloc((self.n_rows + 1) * sizeof(int))
        if order == NULL or other == NULL:
            free(order)
            free(other)
            raise MemoryError
        for i in range(self.n_rows):
            order[i] = <int>i
        _sort_rows(self.rows, self.keys, order, other, self.n_rows)
        free(other)
        self.order = order
        return 0

    cdef int64_t _first_from(self, const uint8_t *key, int64_t n_key) noexcept nogil:
        """The place in the order of the first key that does not come before this one."""
        cdef int64_t low = 0
        cdef int64_t high = self.n_rows
        cdef int64_t middle
        cdef const Reference *row
        while low < high:
            middle = (low + high) // 2
            row = &self.rows[self.order[middle]]
            if _compare(self.keys + row.key, row.n_key, key, n_key) < 0:
                low = middle + 1
            else:
                high = middle
        return low


cdef int _compare(const uint8_t *a, int64_t n_a, const uint8_t *b, int64_t n_b) noexcept nogil:
    cdef int found = memcmp(a, b, min(n_a, n_b))
    return found if found != 0 else (n_a > n_b) - (n_a < n_b)


cdef void _sort_rows(const Reference *rows, const uint8_t *keys, int *order, int *other, int64_t n) noexcept nogil:
    """A merge sort, since rows mostly come sorted in long runs; `other` has room for n."""
    cdef int64_t width = 1
    cdef int64_t low, middle, high, i, j, k
    cdef const Reference *a
    cdef const Reference *b
    while width < n:
        low = 0
        while low + width < n:
            middle = low + width
            high = min(middle + width, n)
            i = low
            j = middle
            k = low
            a = &rows[order[middle - 1]]
            b = &rows[order[middle]]
            if _compare(keys + a.key, a.n_key, keys + b.key, b.n_key) > 0:
                while i < middle and j < high:
                    a = &rows[order[i]]
                    b = &rows[order[j]]
                    if _compare(keys + a.key, a.n_key, keys + b.key, b.n_key) <= 0:
                        other[k] = order[i]
                        i += 1
                    else:
                        other[k] = order[j]
                        j += 1
                    k += 1
                memcpy(other + k, order + i, (middle - i) * sizeof(int))
                # What is left of the right half is where it belongs.
                memcpy(order + low, other + low, (k + middle - i - low) * sizeof(int))
            low = high
        width *= 2


cdef void *_grown(void *data, int64_t *capacity, int64_t n, int64_t itemsize) except NULL:
    """Room for n items, twice as much as there was when that is not enough."""
    if n <= capacity[0] and data != NULL:
        return data
    n = max(n, 2 * capacity[0], <int64_t>MIN_ROWS)
    if n > INT64_MAX // itemsize:
        raise MemoryError
    data = realloc(data, <size_t>(n * itemsize))
    if data == NULL:
        raise MemoryError
    capacity[0] = n
    return data


# documents

cdef struct Text:              # of a document, as far as it has been read
    const uint8_t *data
    int64_t n
    int64_t at

cdef struct String:            # of a document, between its quotes
    int64_t start
    int64_t n
    bint is_plain              # without a backslash


def members_of(bytes raw not None, loads, check=None):
    """Return the members of the JSON object that a document is, up to the one with which they become too many.

    Parameters
    ----------
    raw : bytes
    loads : callable
        `json.loads`, for names with a backslash.
    check : callable, optional
        Takes the values of all other members, as bytes, and raises ValueError for what is no JSON. Without it these are
        only gone over.

    Returns
    -------
    (members, n)
        A dict of the names that reference sets of version 1 have, and "version", to (start, stop) of their values in
        `raw`, and the number of all members.

    Raises
    ------
    ReferenceFormatError
        The document is no JSON object, is nested too deep, or a name is there twice.

    >>> members_of(b'{"version": 1, "x/0": ["u"], "refs": {}}', None)
    ({'version': (12, 13), 'refs': (37, 39)}, 3)
    """
    cdef Text text = _text_of(raw)
    cdef String name
    cdef int64_t start
    cdef int64_t n = 0
    cdef bint known
    members = {}
    _check_utf8(raw)
    _open(&text, c'{', "a JSON object")
    if not _closes(&text, c'}'):
        while True:
            _string(&text, &name)
            _expect(&text, c':')
            _blanks(&text)
            start = text.at
            _skip(&text)
            n += 1
            known = False
            if name.n <= 9 or not name.is_plain:
                label = _str(&text, &name, loads)
                if label in ("version", "templates", "gen", "refs"):
                    if label in members:
                        raise _wrong(name.start, f"member {label!r} is there twice")
                    members[label] = start, text.at
                    known = True
            if check is not None and not known:
                try:
                    check(text.data[start:text.at])
                except ValueError as exc:
                    raise _wrong(start, f"not JSON: {exc}") from None
            if _ends(&text, c'}'):
                break
    _blanks(&text)
    if text.at < text.n:
        raise _wrong(text.at, "expected nothing behind the object")
    return members, n


def read_references(ReferenceTable table not None, bytes raw not None, int64_t start, loads, compact, *,
                    bint takes_null=False):
    """Add the references of a JSON object to a table.

    Parameters
    ----------
    raw : bytes
        A document that `members_of` has read.
    start : int
        Where in it the object begins.
    loads : callable
        `json.loads`, for strings with a backslash.
    compact : callable
        Gives the bytes that an object as a value stands for, of those that it is written with.
    takes_null : bool
        In place of a URL there may be null: the target that the caller names.

    Raises
    ------
    ReferenceFormatError
        A value is none that references have, or a key is there twice.

    Notes
    -----
    References specification, versions 0 and 1: a string is the value itself, or base64 of it; a list is a URL, or a
    URL, an offset and a length; an object, by what is in use, is JSON that is the value itself.
    """
    cdef Text text = _text_of(raw)
    cdef String string
    cdef int64_t value
    cdef int64_t before
    cdef const uint8_t *key
    cdef int64_t n_key
    cdef bytes own
    text.at = start
    table.last_target = -1     # its URL stands in another document
    _open(&text, c'{', "an object of references")
    if _closes(&text, c'}'):
        return
    while True:
        _string(&text, &string)
        own = None
        if string.is_plain:
            key, n_key = text.data + string.start, string.n
        else:
            own = _bytes(&text, &string, loads)
            key, n_key = <const uint8_t *>PyBytes_AS_STRING(own), PyBytes_GET_SIZE(own)
        if not _is_key(key, n_key):
            raise _wrong(string.start, f"{key[:min(n_key, 200)].decode(errors='replace')!r} is no key: {_KEY_RULES}")
        _expect(&text, c':')
        _blanks(&text)
        value = text.at
        before = table.n_rows
        _read_value(table, &text, key, n_key, loads, compact, takes_null)
        if table.n_rows == before:
            raise _wrong(value, f"key {key[:n_key].decode()!r:.200} is there twice")
        if _ends(&text, c'}'):
            return


cdef bint _is_key(const uint8_t *key, int64_t n_key) noexcept nogil:
    """Whether a key is one: see `zcore.stores.keys`."""
    cdef int64_t start = 0
    cdef int64_t i
    if n_key > MAX_KEY_NBYTES:
        return False
    for i in range(n_key + 1):
        if i < n_key and key[i] == 0:
            return False
        if i == n_key or key[i] == c'/':
            if i == start or (key[start] == c'.' and (i - start == 1 or (i - start == 2 and key[start + 1] == c'.'))):
                return False
            if i - start >= n_temporary and memcmp(key + start, temporary, n_temporary) == 0:
                return False
            start = i + 1
    return True


cdef int _read_value(ReferenceTable table, Text *text, const uint8_t *key, int64_t n_key, loads, compact,
                     bint takes_null) except -1:
    cdef uint8_t opened = text.data[text.at] if text.at < text.n else 0
    cdef int64_t start = text.at
    cdef String string
    cdef bytes data
    if opened == c'[':
        return _read_extent(table, text, key, n_key, loads, takes_null)
    if opened == c'"':
        _string(text, &string)
        if string.is_plain and (string.n < 7 or memcmp(text.data + string.start, <const char *>b"base64:", 7) != 0):
            return table._put_data(key, n_key, text.data + string.start, string.n)
        data = _bytes(text, &string, loads)
        if data.startswith(b"base64:"):
            try:
                data = a2b_base64(data[7:], strict_mode=True)
            except ValueError as exc:
                raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: not base64: {exc}") from None
    elif opened == c'{':
        _skip(text)
        try:
            data = compact(text.data[start:text.at])
        except ValueError as exc:
            raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: not JSON: {exc}") from None
    else:
        raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: expected a string, an object, [url] or "
                            "[url, offset, length]")
    return table._put_data(key, n_key, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef int _read_extent(ReferenceTable table, Text *text, const uint8_t *key, int64_t n_key, loads,
                      bint takes_null) except -1:
    """Read [url] or [url, offset, length]."""
    cdef int64_t start = text.at
    cdef int64_t offset = 0
    cdef int64_t length = WHOLE
    cdef String url
    cdef bytes own
    cdef int target
    text.at += 1
    _blanks(text)
    if takes_null and text.n - text.at >= 4 and memcmp(text.data + text.at, <const char *>b"null", 4) == 0:
        text.at += 4
        target = table._number_of(None)
    elif text.at < text.n and text.data[text.at] == c'"':
        _string(text, &url)
        if not url.is_plain:
            own = _bytes(text, &url, loads)
            target = table._number_of(own.decode())
        elif table.last_target >= 0 and url.n == table.n_last_url and memcmp(
                text.data + url.start, text.data + table.last_url, url.n) == 0:
            # Most references have the target of the one before.
            target = table.last_target
        else:
            target = table._number_of(PyUnicode_DecodeUTF8(<const char *>text.data + url.start, url.n, NULL))
            table.last_target, table.last_url, table.n_last_url = target, url.start, url.n
    else:
        raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: expected [url] or [url, offset, length]")
    if not _closes(text, c']'):
        _expect(text, c',')
        offset = _number(text, key, n_key)
        _expect(text, c',')
        length = _number(text, key, n_key)
        _expect(text, c']')
        if offset > INT64_MAX - length:
            raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: ends beyond byte 2**63")
    return table._put(key, n_key, target, offset, length)


cdef int64_t _number(Text *text, const uint8_t *key, int64_t n_key) except -1:
    """Read an offset or a length."""
    cdef int64_t number = 0
    cdef int64_t start
    cdef int64_t n_digits
    cdef int digit
    _blanks(text)
    start = text.at
    while text.at < text.n and c'0' <= text.data[text.at] <= c'9':
        digit = text.data[text.at] - c'0'
        if number > (INT64_MAX - digit) // 10:
            raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: offset and length are numbers below 2**63")
        number = 10 * number + digit
        text.at += 1
    n_digits = text.at - start
    _blanks(text)
    if n_digits == 0 or (text.data[start] == c'0' and n_digits > 1) or (
            text.at < text.n and text.data[text.at] != c',' and text.data[text.at] != c']'):
        raise _wrong(start, f"key {key[:n_key].decode()!r:.200}: offset and length are whole numbers from 0 on, found "
                            f"{_shown(text, start)}")
    return number


# JSON, as far as it is not built-in: RFC 8259

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
    """All of a document is text; so nothing that is cut out of it need be looked at again."""
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


cdef void _blanks(Text *text) noexcept nogil:
    while text.at < text.n and text.data[text.at] in (c' ', c'\n', c'\r', c'\t'):
        text.at += 1


cdef int _open(Text *text, uint8_t bracket, what) except -1:
    _blanks(text)
    if text.at >= text.n or text.data[text.at] != bracket:
        raise _wrong(text.at, f"expected {what}")
    text.at += 1
    return 0


cdef int _expect(Text *text, uint8_t mark) except -1:
    _blanks(text)
    if text.at >= text.n or text.data[text.at] != mark:
        raise _wrong(text.at, f"expected {chr(mark)!r}, found {_shown(text, text.at)}")
    text.at += 1
    return 0


cdef bint _closes(Text *text, uint8_t bracket) noexcept nogil:
    """Whether the list or object ends here; goes on behind it if so."""
    _blanks(text)
    if text.at < text.n and text.data[text.at] == bracket:
        text.at += 1
        return True
    return False


cdef bint _ends(Text *text, uint8_t bracket) except -1:
    """Whether the list or object ends behind this item, or another one follows."""
    if _closes(text, bracket):
        return True
    _expect(text, c',')
    return False


cdef int _string(Text *text, String *string) except -1:
    """Go over a string."""
    cdef uint8_t found
    _blanks(text)
    if text.at >= text.n or text.data[text.at] != c'"':
        raise _wrong(text.at, f"expected a string, found {_shown(text, text.at)}")
    text.at += 1
    string.start = text.at
    string.is_plain = True
    while text.at < text.n:
        found = text.data[text.at]
        if found == c'"':
            string.n = text.at - string.start
            text.at += 1
            return 0
        if found < 0x20:
            raise _wrong(text.at, "a control character in a string")
        if found == c'\\':
            string.is_plain = False
            text.at += 1
        text.at += 1
    raise _wrong(string.start, "a string that does not end")


cdef str _str(const Text *text, const String *string, loads):
    """The text of a string."""
    if string.is_plain:
        return PyUnicode_DecodeUTF8(<const char *>text.data + string.start, string.n, NULL)
    try:
        return loads(text.data[string.start - 1:string.start + string.n + 1])
    except ValueError as exc:
        raise _wrong(string.start, f"a string that is not JSON: {exc}") from None


cdef bytes _bytes(const Text *text, const String *string, loads):
    """The text of a string in UTF-8."""
    try:
        return _str(text, string, loads).encode()
    except UnicodeEncodeError:
        raise _wrong(string.start, "half of a pair of surrogates") from None


cdef inline bint _is_mark(uint8_t found) noexcept nogil:
    return found in (c' ', c'\n', c'\r', c'\t', c',', c':', c'"', c'[', c']', c'{', c'}')


cdef int _skip(Text *text) except -1:
    """Go over a value. Of what is not a string only brackets are looked at: whoever wants it reads it again."""
    cdef String string
    cdef int depth = 0
    cdef int64_t start
    cdef uint8_t found
    cdef uint8_t opened[MAX_DEPTH]
    _blanks(text)
    start = text.at
    while text.at < text.n:
        found = text.data[text.at]
        if found == c'"':
            _string(text, &string)
        elif found == c'[' or found == c'{':
            if depth == MAX_DEPTH - 1:     # the document's own object is around it
                raise _wrong(text.at, f"lists and objects are nested deeper than {MAX_DEPTH}")
            opened[depth] = found
            depth += 1
            text.at += 1
        elif depth and (found == c']' or found == c'}'):
            # In ASCII a bracket that closes comes two behind the one that opens.
            if found - opened[depth - 1] != 2:
                raise _wrong(text.at, f"{chr(found)!r} closes {chr(opened[depth - 1])!r}")
            depth -= 1
            text.at += 1
        elif depth:
            text.at += 1
        else:
            # A number, true, false or null.
            while text.at < text.n and not _is_mark(text.data[text.at]):
                text.at += 1
            break
        if depth == 0:
            break
    if depth or text.at == start:
        raise _wrong(start, "expected a value" if not depth else "a list or an object that does not end")
    return 0
