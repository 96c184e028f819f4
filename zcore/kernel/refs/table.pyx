# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""References in columns: by key, and by chunk number.

Compiled because sets of a million references are common. As Python objects they need half a gigabyte and seconds; here
32 bytes each and the key. In the Parquet layout of reference sets a chunk's number in the C order of the grid gives the
file and the row of its reference. Such a reference needs 20 bytes and no key: keys are parsed when they are looked up.

`Extents` are the objects of one array for one plan: each key is looked up and its file is opened, and no Python object
is made per chunk. Each target is opened once for a plan, by Python, which checks whether the reference set may point
there. All other cases (a target that is missing, short, remote or not allowed) are left to Python as well, which looks
again and raises the error.
"""
import os
import sys
from array import array

from zcore.errors import OutOfMemoryError, ReferenceFormatError
from zcore.kernel.io.files import TEMP_PREFIX

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memcpy, memset, strlen
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add, zc_store
from zcore.kernel.io.files cimport identify_fd
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.memory cimport Bytes, zc_new, zc_resized
from zcore.kernel.select.grid cimport Span
from zcore.kernel.select.open_array cimport MAX_KEY
from zcore.kernel.select.tasks cimport Tasks
from zcore.kernel.status cimport INTERRUPTED, MISSING, OK
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef enum:
    MIN_ROWS = 64
    MAX_ROWS = 0x7FFFFFFE
    MAX_KEY_NBYTES = 1 << 16
    MIN_UNUSED = 1 << 20
    CHECKED = 64               # rows between two looks at the memory
    TARGET_NBYTES = 256        # of a target beside its URL: a place in a list and in a dict, and a number

cdef extern from *:
    """
    #include <string.h>
    /* XOR of both halves of a product. Collisions depend on the seed, so no document can choose them. */
    static inline uint64_t zc_mix(uint64_t a, uint64_t b)
    {
    #ifdef __SIZEOF_INT128__
        __uint128_t product = (__uint128_t)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
        uint64_t middle = a_high * b_low + (a_low * b_low >> 32), carried = a_low * b_high + (uint32_t)middle;
        return a * b ^ (a_high * b_high + (middle >> 32) + (carried >> 32));
    #endif
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

KEY_RULES = (f"it is empty, has an empty part, '.', '..', a part that begins with {TEMP_PREFIX!r}, NUL, or more than "
             f"{MAX_KEY_NBYTES} bytes")


cdef class ReferenceTable:
    """Keys and their values.

    Rows are in the order in which keys were first added. Adding a key again replaces its value.

    Examples
    --------
    >>> table = ReferenceTable()
    >>> table.put(b"x/0", "data.nc", 100, 20)
    >>> table.put_data(b".zgroup", b"{}")
    >>> table.find(b"x/0"), table.find(b".zgroup"), table.find(b"x")
    (('data.nc', 100, 20), b'{}', None)
    """

    def __cinit__(self):
        self.seed = int.from_bytes(os.urandom(8))
        self._targets = []
        self._target_of = {}
        self.max_nbytes = INT64_MAX
        self.advice = ""

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
        """The URLs, each once: a list of str, or None for the target that the caller names."""
        return list(self._targets)

    @property
    def n_targets(self):
        """The number of targets."""
        return len(self._targets)

    @property
    def nbytes(self):
        """Bytes of memory of the columns."""
        return (self.capacity * <int64_t>sizeof(Reference) + self.keys_capacity + self.data_capacity
                + self.n_slots * <int64_t>sizeof(Slot))

    @property
    def needed_nbytes(self):
        """Bytes of memory that the table needs, with its targets, and while it grows."""
        return _needed(self, self.n_slots)

    def limit(self, int64_t max_nbytes=INT64_MAX, str advice=""):
        """Refuse references from now on for which the table would need more memory; the error ends with the advice."""
        self.max_nbytes = max_nbytes
        self.advice = advice

    def set_targets(self, list targets not None):
        """Replace the URLs of all targets, in their order."""
        assert len(targets) == len(self._targets)
        # Not both at once.
        self._target_of = {}
        self._targets = targets
        self._target_of = {url: i for i, url in enumerate(targets)}
        self.targets_nbytes = sum([_nbytes_of_target(url) for url in targets])

    def target(self, Py_ssize_t i):
        """Return the URL of a target by its number."""
        return self._targets[i]

    def numbers_of(self, list urls not None):
        """Return the numbers of targets as a list of int; add targets that are new."""
        return [self._number_of(url) for url in urls]

    # making

    def put(self, bytes key not None, url, int64_t offset, length):
        """Set the value of a key to bytes of a target; ``length`` is None for the whole target."""
        cdef int64_t n_bytes = length if length is not None else WHOLE
        cdef int target = self._number_of(url)
        self._put(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), target, offset, n_bytes)

    @cython.critical_section
    def put_data(self, bytes key not None, bytes data not None):
        """Set the value of a key to inline bytes."""
        self._put_data(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                       <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    @cython.critical_section
    def remove(self, bytes key not None):
        """Remove the value of a key; return whether it had one."""
        cdef int64_t i = _row_of(self, key)
        if i >= 0:
            self._leave(&self.rows[i])
            self.rows[i].target = REMOVED
            self.n_removed += 1
        return i >= 0

    cdef int _put_data(self, const uint8_t *key, int64_t n_key, const uint8_t *data, int64_t n_data) except -1:
        cdef int64_t at
        if self.n_unused > MIN_UNUSED and 2 * self.n_unused > self.n_data:
            _repack(self)
        at = self.n_data
        self.data = <uint8_t *>_grown(self.data, &self.data_capacity, at + n_data, 1)
        memcpy(self.data + at, data, n_data)
        self.n_data += n_data
        return self._put(key, n_key, INLINE, at, n_data)

    cdef int _put(self, const uint8_t *key, int64_t n_key, int target, int64_t offset, int64_t n_bytes) except -1:
        cdef int64_t i = -1
        cdef uint32_t hashed = _hash_of(self, key, n_key)
        cdef Slot *slot = NULL
        cdef Reference *row
        if self.n_slots:
            slot = self._slot_of(key, n_key, hashed)
            i = slot.row
        if i < 0:
            if self.n_rows >= MAX_ROWS:
                raise ReferenceFormatError(f"a reference set has at most {MAX_ROWS} references here")
            i = self.n_rows
            if i >= self.capacity:
                self.rows = <Reference *>_grown(self.rows, &self.capacity, i + 1, sizeof(Reference))
            if self.n_keys + n_key > self.keys_capacity:
                self.keys = <uint8_t *>_grown(self.keys, &self.keys_capacity, self.n_keys + n_key, 1)
            if i % CHECKED == 0:
                _check_room(self, self.n_slots)
            if 3 * (i + 1) > 2 * self.n_slots:
                _check_room(self, 2 * self.n_slots)
                _grow_slots(self, 2 * self.n_slots)
                slot = self._slot_of(key, n_key, hashed)
            memcpy(self.keys + self.n_keys, key, n_key)
            row = &self.rows[i]
            row.key = self.n_keys
            row.n_key = <int>n_key
            row.target = INLINE
            row.n_bytes = 0
            self.n_keys += n_key
            self.n_rows += 1
            slot.hash = hashed
            slot.row = <int>i
            self.is_listed = False
            if self.order != NULL:
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

    cdef int _reserve(self, int64_t n_rows) except -1:
        """Make room for `n_rows` rows in total, so that adding rows does not move them again and again."""
        cdef int64_t n_slots = MIN_ROWS
        if n_rows <= self.capacity:
            return 0
        self.rows = <Reference *>_grown(self.rows, &self.capacity, n_rows, sizeof(Reference))
        while 2 * n_slots < 3 * n_rows:
            n_slots *= 2
        if n_slots > self.n_slots:
            _grow_slots(self, n_slots)
        return 0

    cdef int _number_of(self, url) except -1:
        """Return the number of a target; add it if it is new."""
        found = self._target_of.get(url)
        if found is None:
            if len(self._targets) >= MAX_ROWS:
                raise ReferenceFormatError(f"a reference set has at most {MAX_ROWS} targets here")
            found = self._target_of[url] = len(self._targets)
            self._targets.append(url)
            self.targets_nbytes += _nbytes_of_target(url)
        return found

    # looking up

    cdef int64_t row_of(self, const uint8_t *key, int64_t n_key) noexcept nogil:
        return -1 if self.n_slots == 0 else self._slot_of(key, n_key, _hash_of(self, key, n_key)).row

    cdef Slot *_slot_of(self, const uint8_t *key, int64_t n_key, uint32_t hashed) noexcept nogil:
        cdef int64_t at = hashed & (self.n_slots - 1)
        cdef const Slot *slot
        cdef const Reference *row
        while True:
            slot = &self.slots[at]
            if slot.row < 0:
                return &self.slots[at]
            if slot.hash == hashed:
                row = &self.rows[slot.row]
                if row.n_key == n_key and memcmp(self.keys + row.key, key, n_key) == 0:
                    return &self.slots[at]
            at = (at + 1) & (self.n_slots - 1)

    cdef int look_up(self, const uint8_t *key, int64_t n_key, Reference *row, const uint8_t **data) noexcept nogil:
        cdef int64_t i = self.row_of(key, n_key)
        if i < 0 or self.rows[i].target == REMOVED:
            return 0
        row[0] = self.rows[i]
        data[0] = self.data
        return 1

    cdef ReferenceTable of_tasks(self, Tasks tasks):
        return self

    @cython.critical_section
    def find(self, bytes key not None):
        """Return the value of a key: bytes, or ``(url, offset, length)``; None if it has none.

        The length is None for the whole target.
        """
        cdef int64_t i = _row_of(self, key)
        return None if i < 0 else _value(self, i)

    def __contains__(self, bytes key not None):
        return _row_of(self, key) >= 0

    def items(self):
        """Iterate over (key, value) in the order of the rows; see `find`."""
        cdef int64_t i
        for i in range(self.n_rows):
            if self.rows[i].target != REMOVED:
                yield self._key(i), _value(self, i)

    cdef bytes _key(self, int64_t i):
        return PyBytes_FromStringAndSize(<const char *>self.keys + self.rows[i].key, self.rows[i].n_key)

    # listing

    @cython.critical_section       # it sorts the rows, and threads may list at the same time
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
        if self.order == NULL and not self.is_listed:
            # Opening a dataset takes one listing, and sorting takes longer than that.
            self.is_listed = True
            return _found_below(self, prefix)
        keys, prefixes = [], []
        self._sort()
        i = _first_from(self, text, n_prefix)
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
            # Keys with this prefix are adjacent, so the first key behind them is found by bisection.
            past = below[:n] + b"0"
            i = _first_from(self, <const uint8_t *>PyBytes_AS_STRING(past), n + 1)
        return keys, prefixes

    @cython.critical_section
    def list_keys(self, bytes prefix not None, bytes start not None, int64_t n):
        """Return the first n keys with a prefix, from `start` on, sorted.

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
        i = _first_from(self, <const uint8_t *>PyBytes_AS_STRING(start), PyBytes_GET_SIZE(start))
        while i < self.n_rows and len(keys) < n:
            row = &self.rows[self.order[i]]
            if row.n_key < n_prefix or memcmp(self.keys + row.key, text, n_prefix) != 0:
                break
            if row.target != REMOVED:
                keys.append(self._key(self.order[i]))
            i += 1
        return keys

    cdef int _sort(self) except -1:
        """Sort the rows by key, once."""
        cdef int64_t i
        cdef int *order
        cdef int *other
        if self.order != NULL:
            return 0
        order = <int *>zc_new(self.n_rows + 1, sizeof(int))
        other = <int *>zc_new(self.n_rows + 1, sizeof(int))
        if order == NULL or other == NULL:
            free(order)
            free(other)
            raise _no_memory(2 * (self.n_rows + 1) * sizeof(int))
        for i in range(self.n_rows):
            order[i] = <int>i
        _sort_rows(self.rows, self.keys, order, other, self.n_rows)
        free(other)
        self.order = order
        return 0


cdef int64_t _needed(ReferenceTable self, int64_t n_slots) noexcept:
    """Return the bytes of memory that the table needs with that many slots, also while it grows."""
    # Slots are copied when they become twice as many; the other columns are moved.
    return (self.n_rows * <int64_t>sizeof(Reference) + self.n_keys + self.n_data + self.targets_nbytes
            + 3 * n_slots * <int64_t>sizeof(Slot) // 2)


cdef int _check_room(ReferenceTable self, int64_t n_slots) except -1:
    if _needed(self, n_slots) > self.max_nbytes:
        raise ReferenceFormatError(
            f"expected references that take at most {self.max_nbytes} bytes of memory, found more: {self.n_rows} "
            f"take {_needed(self, n_slots)}{self.advice}")
    return 0


cdef int _repack(ReferenceTable self) except -1:
    """Free inline bytes that no key uses; otherwise each rewrite of a chunk would take more memory."""
    cdef int64_t capacity = self.n_data - self.n_unused
    cdef uint8_t *data = <uint8_t *>zc_new(capacity + 1, 1)
    cdef int64_t at = 0
    cdef int64_t i
    cdef Reference *row
    if data == NULL:
        raise _no_memory(capacity + 1)
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


cdef int _grow_slots(ReferenceTable self, int64_t n_slots) except -1:
    """Set the number of slots, a power of two."""
    cdef Slot *slots
    cdef int64_t i, at
    n_slots = max(<int64_t>MIN_ROWS, n_slots)
    slots = <Slot *>zc_new(n_slots, sizeof(Slot))
    if slots == NULL:
        raise _no_memory(n_slots * sizeof(Slot))
    memset(slots, 0xFF, n_slots * sizeof(Slot))     # the row of each is -1
    for i in range(self.n_slots):
        if self.slots[i].row >= 0:
            at = self.slots[i].hash & (n_slots - 1)
            while slots[at].row >= 0:
                at = (at + 1) & (n_slots - 1)
            slots[at] = self.slots[i]
    free(self.slots)
    self.slots = slots
    self.n_slots = n_slots
    return 0


cdef uint32_t _hash_of(ReferenceTable self, const uint8_t *key, int64_t n_key) noexcept nogil:
    return <uint32_t>zc_hash_bytes(self.seed, key, n_key)


cdef int64_t _row_of(ReferenceTable self, bytes key) except? -2:
    """Return the row of a key that has a value, or -1."""
    cdef int64_t i = self.row_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    return -1 if i >= 0 and self.rows[i].target == REMOVED else i


cdef object _value(ReferenceTable self, int64_t i):
    cdef const Reference *row = &self.rows[i]
    if row.target == INLINE:
        return PyBytes_FromStringAndSize(<const char *>self.data + row.offset, row.n_bytes)
    return self._targets[row.target], row.offset, None if row.n_bytes == WHOLE else row.n_bytes


cdef tuple _found_below(ReferenceTable self, bytes prefix):
    """Return the result of `list_dir` by looking at each row."""
    cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(prefix)
    cdef int64_t n_prefix = PyBytes_GET_SIZE(prefix)
    cdef const Reference *row
    cdef const uint8_t *key
    cdef const uint8_t *slash
    cdef const uint8_t *last = text     # the prefix that was found last
    cdef int64_t n_last = 0
    cdef int64_t i
    keys, prefixes = [], set()
    for i in range(self.n_rows):
        row = &self.rows[i]
        key = self.keys + row.key
        if row.target == REMOVED or row.n_key <= n_prefix or (
                n_last and row.n_key >= n_last and memcmp(key, last, n_last) == 0) or (
                memcmp(key, text, n_prefix) != 0):
            continue
        slash = <const uint8_t *>memchr(key + n_prefix, c'/', row.n_key - n_prefix)
        if slash == NULL:
            keys.append(self._key(i))
            continue
        if slash == key + n_prefix:
            continue
        last, n_last = key, slash - key + 1
        prefixes.add(PyBytes_FromStringAndSize(<const char *>last, n_last))
    return sorted(keys), sorted(prefixes)


cdef int64_t _first_from(ReferenceTable self, const uint8_t *key, int64_t n_key) noexcept nogil:
    """Return the position in `order` of the first key that is not before this one."""
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


cdef int64_t _nbytes_of_target(url) except -1:
    return TARGET_NBYTES + (0 if url is None else sys.getsizeof(url))


cdef int _compare(const uint8_t *a, int64_t n_a, const uint8_t *b, int64_t n_b) noexcept nogil:
    cdef int found = memcmp(a, b, min(n_a, n_b))
    return found if found != 0 else (n_a > n_b) - (n_a < n_b)


cdef void _sort_rows(const Reference *rows, const uint8_t *keys, int *order, int *other, int64_t n) noexcept nogil:
    """Merge sort, because rows mostly come in long sorted runs; `other` has room for n."""
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
                # The rest of the right half is already in place.
                memcpy(order + low, other + low, (k + middle - i - low) * sizeof(int))
            low = high
        width *= 2


cdef void *_grown(void *data, int64_t *capacity, int64_t n, int64_t itemsize) except NULL:
    """Return memory for n items, doubled if the old memory is too small."""
    if n <= capacity[0] and data != NULL:
        return data
    n = max(n, 2 * capacity[0], <int64_t>MIN_ROWS)
    data = zc_resized(data, n, itemsize)
    if data != NULL:
        capacity[0] = n
        return data
    raise _no_memory(n * <object>itemsize)


cdef object _no_memory(n_bytes):
    return OutOfMemoryError(f"no memory for {n_bytes} bytes of a table of references", nbytes=n_bytes)


cdef bint is_key(const uint8_t *key, int64_t n_key) noexcept nogil:
    """Whether a text is a valid key: see `zcore.stores.keys`."""
    cdef int64_t start = 0
    cdef int64_t i
    if n_key > MAX_KEY_NBYTES:
        return False
    for i in range(n_key + 1):
        if i < n_key and key[i] > c'/':
            continue
        if i < n_key and key[i] == 0:
            return False
        if i == n_key or key[i] == c'/':
            # Refused names begin with a dot: ".", "..", and temporary files.
            if i == start or (key[start] == c'.' and (i - start == 1 or (i - start == 2 and key[start + 1] == c'.')
                              or (i - start >= n_temporary and memcmp(key + start, temporary, n_temporary) == 0))):
                return False
            start = i + 1
    return True


# references by chunk number

cdef enum:
    POLLED = 1 << 20           # tasks between two polls of signals


@cython.final
cdef class Records:
    """The references of one file, a row for each chunk.

    Parameters
    ----------
    targets : array of int32
        Numbers of targets; -1 for inline data, -2 for no reference.
    offsets, lengths : array of int64
        Within the target or `data`; a length of -1 means the whole target.
    data : bytes
    n_targets : int

    Raises
    ------
    ReferenceFormatError
        A row has no valid target or an impossible extent.
    """

    def __init__(self, targets, offsets, lengths, bytes data not None, int n_targets):
        cdef int64_t i, offset, n_bytes
        cdef int64_t n_data = len(data)
        cdef int target
        cdef bint is_right
        self.targets, self.offsets, self.lengths = targets, offsets, lengths
        self.columns = tuple([Bytes(column) for column in (targets, offsets, lengths)])
        self.data = data
        self.rows.n = len(targets)
        self.rows.data = <const uint8_t *>PyBytes_AS_STRING(data)
        self.rows.targets = <const int *>(<Bytes>self.columns[0]).data
        self.rows.offsets = <const int64_t *>(<Bytes>self.columns[1]).data
        self.rows.lengths = <const int64_t *>(<Bytes>self.columns[2]).data
        assert [column.itemsize for column in (targets, offsets, lengths)] == [sizeof(int), 8, 8]
        assert len(targets) == len(offsets) == len(lengths)
        for i in range(self.rows.n):
            target, offset, n_bytes = self.rows.targets[i], self.rows.offsets[i], self.rows.lengths[i]
            if target == REMOVED:
                continue
            is_right = offset >= 0 and n_bytes >= WHOLE and offset <= INT64_MAX - max(n_bytes, 0)
            if target == INLINE:
                is_right = is_right and n_bytes >= 0 and offset + n_bytes <= n_data
            if not is_right or target < INLINE or target >= n_targets:
                raise ReferenceFormatError(
                    f"row {i}: expected an offset and a size from 0 on that end before byte 2**63, found {offset} "
                    f"and {n_bytes}")

    def __len__(self):
        return self.rows.n

    @property
    def nbytes(self):
        """Bytes of memory of the columns."""
        return 20 * self.rows.n + len(self.data)


@cython.final
cdef class RecordTable(ReferenceTable):
    """The references of one array.

    Parameters
    ----------
    documents : ReferenceTable
        The table whose targets the records use.
    prefix : bytes
        Prefix of the array's keys.
    grid_shape : tuple of int
        Chunks per dimension; their product is below 2**63.
    separator : bytes
        Between the indices in a key; one character.
    record_size : int
        Number of references in a file.
    load : callable
        Returns the `Records` of a file by its number, or None if there is no such file.

    Examples
    --------
    >>> from zcore.kernel.refs.table import ReferenceTable
    >>> table = RecordTable(ReferenceTable(), b"x/", (3, 4), b".", 5, None)
    >>> table.number_of(b"x/1.2"), table.number_of(b"x/3.0"), table.number_of(b"x/01.2"), table.number_of(b"x/1")
    (6, -1, -1, -1)
    """

    def __init__(self, ReferenceTable documents not None, bytes prefix not None, tuple grid_shape not None,
                 bytes separator not None, int64_t record_size, load):
        cdef int d
        assert len(separator) == 1 and record_size >= 1 and len(grid_shape) <= MAX_NDIM
        self._targets = documents._targets
        self.prefix = prefix
        self.prefix_text = PyBytes_AS_STRING(prefix)
        self.n_prefix = PyBytes_GET_SIZE(prefix)
        self.grid_shape = grid_shape
        self.separator = separator
        self.sign = PyBytes_AS_STRING(separator)[0]
        self.record_size = record_size
        self.load_file = load
        self.ndim = len(grid_shape)
        for d in range(self.ndim):
            self.grid[d] = grid_shape[d]

    def number_of(self, bytes key not None):
        """Return the chunk number of a key, or -1."""
        return _number_of_key(self, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    cdef ReferenceTable of_tasks(self, Tasks tasks):
        """Return the same table with the files loaded that these tasks need."""
        cdef Span spans[MAX_NDIM]
        cdef RecordTable table = RecordTable(self, self.prefix, self.grid_shape, self.separator, self.record_size,
                                             self.load_file)
        cdef int64_t task, number, i
        cdef int64_t last = -1
        cdef int d
        cdef set needed = set()
        cdef list numbers
        if tasks.ndim == self.ndim:
            for task in range(tasks.n_tasks):
                tasks.spans_of(task, spans)
                number = 0
                for d in range(self.ndim):
                    if spans[d].chunk >= self.grid[d]:
                        break
                    number = number * self.grid[d] + spans[d].chunk
                else:
                    number //= self.record_size
                    if number != last:
                        needed.add(number)
                        last = number
                if task % POLLED == POLLED - 1:
                    PyErr_CheckSignals()
        numbers = sorted(needed)
        table.files = [self.load_file(number) for number in numbers]
        table.held = Bytes(array("q", numbers)), Bytes(bytearray(len(numbers) * sizeof(Rows)))
        table.numbers, table.rows_of = <int64_t *>(<Bytes>table.held[0]).data, <Rows *>(<Bytes>table.held[1]).data
        table.n_files = len(numbers)
        for i in range(table.n_files):
            if table.files[i] is not None:
                table.rows_of[i] = (<Records?>table.files[i]).rows
        return table

    cdef int look_up(self, const uint8_t *key, int64_t n_key, Reference *row, const uint8_t **data) noexcept nogil:
        cdef int64_t number = _number_of_key(self, key, n_key)
        cdef int64_t file = number // self.record_size
        cdef int64_t low = 0
        cdef int64_t high = self.n_files
        cdef int64_t middle, i
        cdef const Rows *rows
        if number < 0:
            return 0
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] < file:
                low = middle + 1
            else:
                high = middle
        if low == self.n_files or self.numbers[low] != file:
            return -1
        rows = &self.rows_of[low]
        i = number - file * self.record_size
        if i >= rows.n or rows.targets[i] == REMOVED:
            return 0
        row.target = rows.targets[i]
        row.offset = rows.offsets[i]
        row.n_bytes = rows.lengths[i]
        data[0] = rows.data
        return 1


cdef int64_t _number_of_key(RecordTable self, const uint8_t *key, int64_t n_key) noexcept nogil:
    cdef int64_t i = self.n_prefix
    cdef int64_t number = 0
    cdef int64_t index, first
    cdef int d
    if n_key <= i or memcmp(key, self.prefix_text, i) != 0:
        return -1
    if self.ndim == 0:
        return 0 if n_key == i + 1 and key[i] == c'0' else -1
    for d in range(self.ndim):
        first = i
        index = 0
        while i < n_key and i - first < 19 and c'0' <= key[i] <= c'9':
            # Every number of 18 digits is below 2**63, but not every number of 19 digits.
            if index > (INT64_MAX - 9) // 10:
                return -1
            index = 10 * index + (key[i] - c'0')
            i += 1
        if i == first or (key[first] == c'0' and i > first + 1) or index >= self.grid[d]:
            return -1
        number = number * self.grid[d] + index
        if d < self.ndim - 1:
            if i >= n_key or key[i] != <uint8_t>self.sign:
                return -1
            i += 1
    return number if i == n_key else -1


cdef extern from "<sys/resource.h>" nogil:
    ctypedef struct c_rlimit "struct rlimit":
        unsigned long rlim_cur
    int RLIMIT_NOFILE
    int getrlimit(int resource, c_rlimit *limit)

cdef enum:
    MAX_OPEN = 128             # targets that all plans hold open at a time; others are opened for each object
    PART_OPEN = 8              # or 1/8 of the process's limit of descriptors (mostly 1024), if that is fewer
    MAX_KNOWN = 1024           # targets that a plan has opened, or tried to

cdef uint8_t[1] nothing        # address of the bytes of an empty object
cdef int64_t n_held = 0        # targets held open by all plans; no order: it only counts


@cython.final
cdef class Extents:
    """Finds the bytes of the objects of one array, for one plan.

    Parameters
    ----------
    table : ReferenceTable
        It must not change meanwhile.
    prefix : bytes
        Prefix of the array's keys in the table.
    open_target : callable
        Opens the target of a URL for reading and returns the descriptor.
    """

    def __cinit__(self, ReferenceTable table not None, bytes prefix not None, open_target):
        self.table = table
        self.prefix = prefix
        self.prefix_text = prefix
        self.n_prefix = len(prefix)
        self.open_target = open_target

    cdef int prepare(self, Tasks tasks) except -1:
        cdef int64_t i, n_targets
        cdef c_rlimit limit
        assert self.files == NULL, "extents are of one plan"
        self.max_open = MAX_OPEN
        if getrlimit(RLIMIT_NOFILE, &limit) == 0 and limit.rlim_cur // PART_OPEN < MAX_OPEN:
            self.max_open = <int64_t>(limit.rlim_cur // PART_OPEN)
        self.table = self.table.of_tasks(tasks)
        n_targets = min(<int64_t>len(self.table._targets), MAX_KNOWN)
        self.n_slots = 1
        while self.n_slots < 2 * n_targets:
            self.n_slots *= 2
        self.files = <File *>zc_new(self.n_slots, sizeof(File))
        if self.files == NULL:
            raise MemoryError
        for i in range(self.n_slots):
            self.files[i].target = -1
        return 0

    def __dealloc__(self):
        cdef int64_t i
        if self.files != NULL:
            for i in range(self.n_slots):
                if self.files[i].target >= 0 and self.files[i].fd >= 0:
                    close(self.files[i].fd)
                    zc_add(&n_held, -1)
            free(self.files)

    cdef int find(self, const char *key, Place *place) noexcept nogil:
        cdef int64_t n_key = <int64_t>strlen(key)
        cdef char name[2 * MAX_KEY]
        cdef const uint8_t *data
        cdef Reference row
        cdef int code
        if self.n_prefix > MAX_KEY:
            return INTERRUPTED
        memcpy(name, self.prefix_text, self.n_prefix)
        memcpy(name + self.n_prefix, key, n_key)
        code = self.table.look_up(<const uint8_t *>name, self.n_prefix + n_key, &row, &data)
        if code <= 0:
            return MISSING if code == 0 else INTERRUPTED
        memset(place, 0, sizeof(Place))
        place.fd = -1
        place.n_bytes = row.n_bytes
        if row.target == INLINE or row.n_bytes == 0:
            # An empty object needs no target.
            place.data = data + row.offset if row.n_bytes else nothing
            return OK
        place.offset = row.offset
        if not _find_file(self, row.target, place):
            return INTERRUPTED
        if row.n_bytes == WHOLE:
            place.n_bytes = place.identity.size
        # An offset and length from the set are valid only within the target.
        if row.offset > place.identity.size - place.n_bytes:
            self.leave(place)
            return INTERRUPTED
        return OK

    cdef void leave(self, const Place *place) noexcept nogil:
        if place.fd >= 0 and not place.is_shared:
            close(place.fd)

    cdef File *_slot_of(self, int64_t target) noexcept nogil:
        """Return the slot of a target, or the free slot where it belongs. At least half of the slots are free."""
        cdef int64_t i = target & (self.n_slots - 1)
        while self.files[i].target >= 0 and self.files[i].target != target:
            i = (i + 1) & (self.n_slots - 1)
        return &self.files[i]

    cdef void _open(self, int target, Place *place) noexcept with gil:
        try:
            try:
                place.fd = self.open_target(self.table._targets[target])
            except Exception:
                return             # the task is tried again in Python, which reports the error
            except BaseException as exception:
                # The exception of a signal handler, which is not called again.
                self.exception = exception
                zc_store(&self.is_interrupted, 1)
                return
        except:  # noqa: E722 (the only clause that cannot raise itself; no caller could see an exception)
            return
        if identify_fd(place.fd, &place.identity) != 0:
            close(place.fd)
            place.fd = -1


# targets

cdef bint _find_file(Extents self, int target, Place *place) noexcept nogil:
    """Set the descriptor of a target in `place`; return whether there is one."""
    cdef File *file
    cdef bint is_known
    section_enter(&self.guard)
    file = self._slot_of(target)
    is_known = file.target >= 0
    if is_known:
        place.fd = file.fd
        place.identity = file.identity
        place.is_shared = True
    zc_store(&self.guard, 0)
    if not is_known:
        self._open(target, place)
        _keep(self, target, place)
    return place.fd >= 0


cdef void _keep(Extents self, int target, Place *place) noexcept nogil:
    """Share the descriptor of a target, or its absence, with other objects, unless there are too many."""
    cdef File *file
    section_enter(&self.guard)
    file = self._slot_of(target)
    # Another thread may have been faster; then only this object uses the descriptor.
    if file.target < 0 and 2 * self.n_files < self.n_slots:
        place.is_shared = place.fd < 0 or zc_add(&n_held, 1) < self.max_open
        if place.is_shared:
            file.target = target
            file.identity = place.identity
            file.fd = place.fd
            self.n_files += 1
        else:
            zc_add(&n_held, -1)
    zc_store(&self.guard, 0)
