# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading arrays whose objects are parts of other files: of each chunk the place is looked up, and read from there.

No object of Python is made for a chunk. Targets are opened once for a plan, by Python, which judges whether the set may
point there. Whatever is not as it should be (a target that is missing, short, remote or not allowed) is left to Python
as well, which finds it again and says what is wrong.
"""
cimport cython
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen
from posix.types cimport off_t
from posix.unistd cimport close, pread

from zcore.kernel.atomics cimport zc_add, zc_load, zc_store, zc_swap_if
from zcore.kernel.fileio cimport Identity, buffer_reserve, identify_fd
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport Worker
from zcore.kernel.read cimport ReadPlan
from zcore.kernel.references cimport INLINE, WHOLE, Reference, ReferenceTable
from zcore.kernel.status cimport INTERRUPTED, MISSING
from zcore.kernel.tasks cimport MAX_KEY

cdef enum:
    MAX_OPEN = 128             # targets that all plans hold open at a time; others are opened for each chunk
    UNKNOWN = -1               # in place of a descriptor: nobody has asked for it
    REFUSED = -2               # Python could not open it

cdef int64_t n_held = 0        # of them, by all plans: a process may have 1024 descriptors, or fewer

cdef struct File:
    int64_t fd
    int64_t size


@cython.final
cdef class ReferenceReadPlan(ReadPlan):
    """A `ReadPlan` of an array in a reference set.

    Parameters
    ----------
    table : ReferenceTable
        Nobody changes it meanwhile.
    prefix : bytes
        Of the array's keys in it.
    open_target : callable
        Opens the target of a URL for reading and returns the descriptor.

    Notes
    -----
    The other parameters are those of `Plan`; there is no directory.
    """

    cdef ReferenceTable table
    cdef bytes prefix
    cdef const char *prefix_text
    cdef int64_t n_prefix
    cdef object open_target
    cdef list targets
    cdef int64_t n_targets
    cdef File *files

    def __cinit__(self, *args, **kwargs):
        self.files = NULL

    def __init__(self, *args, ReferenceTable table not None, bytes prefix not None, open_target, **kwargs):
        cdef int64_t i
        ReadPlan.__init__(self, *args, **kwargs)
        self.table = table.of_tasks(self)
        self.prefix = prefix
        self.prefix_text = prefix
        self.n_prefix = len(prefix)
        self.open_target = open_target
        self.targets = self.table.targets
        self.n_targets = len(self.targets)
        self.files = <File *>malloc((self.n_targets + 1) * sizeof(File))
        if self.files == NULL:
            raise MemoryError
        for i in range(self.n_targets):
            self.files[i].fd = UNKNOWN

    def __dealloc__(self):
        cdef int64_t i
        if self.files != NULL:
            for i in range(self.n_targets):
                if self.files[i].fd >= 0:
                    close(<int>self.files[i].fd)
                    zc_add(&n_held, -1)
            free(self.files)

    cdef int load(self, const char *key, const Span *spans, Worker *worker) noexcept nogil:
        cdef int64_t n_key = <int64_t>strlen(key)
        cdef char name[2 * MAX_KEY]
        cdef Reference row
        cdef const uint8_t *data
        cdef File file
        cdef bint is_kept
        cdef int code
        if self.n_prefix > MAX_KEY:
            return INTERRUPTED
        memcpy(name, self.prefix_text, self.n_prefix)
        memcpy(name + self.n_prefix, key, n_key)
        code = self.table.look_up(<const uint8_t *>name, self.n_prefix + n_key, &row, &data)
        if code <= 0:
            return MISSING if code == 0 else INTERRUPTED
        if row.target == INLINE:
            return self._take_in_part(row.n_bytes, data + row.offset, spans, worker)
        if row.n_bytes == 0:
            return self._take_in_part(0, NULL, spans, worker)
        is_kept = self._file_of(row.target, &file)
        if file.fd < 0:
            return INTERRUPTED
        code = self._read(&file, &row, spans, worker)
        if not is_kept:
            close(<int>file.fd)
        return code

    cdef int _take_in_part(self, int64_t n_bytes, const uint8_t *encoded, const Span *spans,
                           Worker *worker) noexcept nogil:
        if n_bytes > self.stored_limit(spans, worker):
            return INTERRUPTED
        return self.take_in(encoded, n_bytes, spans, worker)

    cdef int _read(self, const File *file, const Reference *row, const Span *spans, Worker *worker) noexcept nogil:
        cdef int64_t n_bytes = file.size if row.n_bytes == WHOLE else row.n_bytes
        cdef int64_t n = 0
        cdef Py_ssize_t n_read
        # What the set says is believed as far as the target and the chunk go, and no byte is allocated beyond.
        if n_bytes > self.stored_limit(spans, worker) or row.offset > file.size - n_bytes:
            return INTERRUPTED
        if buffer_reserve(&worker.encoded, n_bytes, &worker.status) != 0:
            return worker.status.code
        while n < n_bytes:
            n_read = pread(<int>file.fd, worker.encoded.data + n, <size_t>(n_bytes - n), <off_t>(row.offset + n))
            if n_read < 0 and errno == EINTR:
                continue
            if n_read <= 0:
                return INTERRUPTED
            n += n_read
        return self.take_in(worker.encoded.data, n_bytes, spans, worker)

    # targets

    cdef bint _file_of(self, int target, File *file) noexcept nogil:
        """Give the descriptor of a target, or a negative number; whether the plan keeps it for other chunks."""
        cdef bint is_kept = True
        file.fd = zc_load(&self.files[target].fd)
        if file.fd == UNKNOWN:
            file.fd = REFUSED
            self._open(target, file)
            while not zc_swap_if(&self.guard, 0, 1):
                pass
            is_kept = self.files[target].fd == UNKNOWN
            if is_kept and file.fd >= 0 and zc_add(&n_held, 1) >= MAX_OPEN:
                zc_add(&n_held, -1)
                is_kept = False
            if is_kept:
                self.files[target].size = file.size
                zc_store(&self.files[target].fd, file.fd)
            zc_store(&self.guard, 0)
            return is_kept or file.fd < 0
        file.size = self.files[target].size
        return True

    cdef void _open(self, int target, File *file) noexcept with gil:
        cdef Identity identity
        try:
            try:
                file.fd = self.open_target(self.targets[target])
            except Exception:
                return             # whoever does the task again meets it again, and says what it was
            except BaseException as exception:
                # Of a signal handler, which will not be called again.
                self.exception = exception
                zc_store(&self.stop, 1)
                return
        except:  # noqa: E722 (the only clause that cannot raise itself, as nobody above could see it)
            return
        file.size = identity.size if identify_fd(<int>file.fd, &identity) == 0 else 0
