# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Objects that are parts of other files: looks up each key and opens its file.

Compiled so that no Python object is made per chunk. Each target is opened once for a plan, by Python, which checks
whether the reference set may point there. All other cases (a target that is missing, short, remote or not allowed) are
left to Python as well, which looks again and raises the error.
"""
cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strlen

from zcore.kernel.atomics cimport zc_add, zc_store
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.io.files cimport identify_fd, object_close
from zcore.kernel.memory cimport zc_new
from zcore.kernel.refs.table cimport INLINE, WHOLE, Reference, ReferenceTable
from zcore.kernel.status cimport INTERRUPTED, MISSING, OK
from zcore.kernel.select.open_array cimport MAX_KEY
from zcore.kernel.select.tasks cimport Tasks

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
                    object_close(self.files[i].fd)
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
            object_close(place.fd)

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
            object_close(place.fd)
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
