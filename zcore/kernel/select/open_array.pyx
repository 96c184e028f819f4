# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The kernel's view of an open array: one C struct with a reference count, shared by threads and by all plans.

Compiled because it turns the Python values of an array into C values, so that a plan of it needs no Python.
"""
cimport cython
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strlen
from posix.fcntl cimport AT_FDCWD, O_CLOEXEC, O_NOCTTY, O_NONBLOCK, O_RDONLY, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add, zc_wall_ns
from zcore.kernel.codec.program cimport Program
from zcore.kernel.io.files cimport identify_fd, identify_name, object_has, same_identity
from zcore.kernel.select.grid cimport Edges


cdef const Opened *opened_hold(const Opened *opened) noexcept nogil:
    zc_add(<int64_t *>&opened.n_holders, 1)
    return opened


cdef void opened_release(const Opened *opened) noexcept nogil:
    if opened != NULL and zc_add(<int64_t *>&opened.n_holders, -1) == 1:
        if opened.owner != NULL:
            with gil:
                Py_XDECREF(<PyObject *>opened.owner)
        free(<void *>opened)


cdef bytes _swapped(bytes item, int64_t unit):
    """Return the bytes of an item with the order of each `unit` of them reversed."""
    return b"".join([item[i:i + unit][::-1] for i in range(0, len(item), unit)])


cdef int _own(Opened *opened, object owner) except -1:
    Py_INCREF(owner)
    opened.owner = <void *>owner
    return 0


@cython.final
cdef class OpenArray:
    """An open array.

    Parameters
    ----------
    shape, chunk_shape : tuple of int
        Shapes of the array and of its stored objects, in elements; if objects differ, the longest in each dimension.
    program : Program, ShardProgram or None
        Program that encodes a chunk or a shard; None: tasks are only listed.
    fill : bytes
        One element, in the form of the caller's memory; empty for elements of varying length.
    template : tuple of bytes
        ``(head, separator, tail)`` of the chunk keys, relative to `directory`.
    directory : bytes or None
        Directory of the array's objects; None if they are not files of their own.
    document : bytes or None
        Name of the metadata document.
    identity : tuple of int or None
        Identity of the document that the array was opened with; a writer that finds another one stops.
    content : bytes or None
        Content of that document, if its identity alone does not distinguish it: a document that was replaced at once
        may have passed inode, size and times on to its successor.
    swap : int
        Unit in bytes whose order differs between chunks and the caller's memory, 0 for none.
    order : tuple of int or None
        Permutation of the dimensions in which a chunk (of a shard: the innermost) is stored; None for C order.
    edges : tuple of (Edges or None) or None
        Chunk lengths of the stored objects, for the dimensions in which they differ.
    lenient : bool
        A border chunk may be stored without the elements outside the array.
    missing_raises : bool
        An absent object is an error if its elements are needed; otherwise they are the fill value.
    keep_filled : bool
        Store objects that hold only the fill value.
    fsync : bool
        Sync objects to disk before a write returns.
    """

    def __cinit__(self):
        self.opened = NULL

    def __dealloc__(self):
        opened_release(self.opened)

    def __init__(self, tuple shape not None, tuple chunk_shape not None, *, program, bytes fill not None,
                 tuple template not None, bytes directory=None, bytes document=None, identity=None, bytes content=None,
                 int64_t swap=0, order=None, tuple edges=None, bint lenient=False, bint missing_raises=False,
                 bint keep_filled=False, bint fsync=False):
        cdef bytes stored_fill = fill if swap == 0 else _swapped(fill, swap)
        cdef Opened *opened
        if len(shape) > MAX_NDIM:
            raise ValueError(f"array has {len(shape)} dimensions, at most {MAX_NDIM} are supported")
        assert self.opened == NULL and len(chunk_shape) == len(shape)
        self.opened = opened = <Opened *>calloc(1, sizeof(Opened))
        if opened == NULL:
            raise MemoryError
        opened.n_holders = 1
        _own(opened, (program, edges, fill, stored_fill, *template, directory, document, content))
        opened.ndim = <int>len(shape)
        self.shape = shape
        self.chunk_shape = chunk_shape
        self.edges = edges
        self.shard_shapes = tuple(_set_programs(self, program))
        _set_grid(self)
        _set_elements(self, fill, stored_fill, swap, order)
        _set_keys(self, template)
        self.directory = directory
        if directory is not None:
            opened.directory = directory
        _set_document(self, document, identity, content)
        opened.lenient = lenient
        opened.missing_raises = missing_raises
        opened.keep_filled = keep_filled
        opened.fsync = fsync
        opened.disk = -1

    cdef OpenArray rooted(self):
        cdef tuple owner = <tuple>self.opened.owner
        cdef const Opened *opened = self.opened
        cdef bytes head = self.directory + b"/" + opened.head[:opened.n_head]
        cdef OpenArray copy = _copied(self, (head, *owner))
        copy.opened.head, copy.opened.n_head = head, <int>len(head)
        _check_keys(copy)
        return copy

    cdef OpenArray cut(self, tuple chunk_shape):
        cdef OpenArray copy = _copied(self, <object>self.opened.owner)
        copy.opened.program = NULL
        copy.opened.n_levels = 0
        copy.opened.directory = NULL
        copy.directory = None
        copy.chunk_shape = chunk_shape
        copy.shard_shapes = ()
        copy.edges = None
        _set_grid(copy)
        return copy


cdef OpenArray _copied(OpenArray self, object owner):
    cdef OpenArray copy = OpenArray.__new__(OpenArray)
    cdef Opened *opened = <Opened *>malloc(sizeof(Opened))
    if opened == NULL:
        raise MemoryError
    memcpy(opened, self.opened, sizeof(Opened))
    opened.n_holders = 1
    copy.opened = opened
    _own(opened, owner)
    copy.shape = self.shape
    copy.chunk_shape = self.chunk_shape
    copy.shard_shapes = self.shard_shapes
    copy.edges = self.edges
    copy.directory = self.directory
    return copy


cdef list _set_programs(OpenArray self, object program):
    """Set the programs of all levels; return the shapes of the shards, and set the shape of the chunks."""
    cdef Opened *opened = self.opened
    cdef int d
    cdef list shapes = []
    while program is not None and type(program) is not Program:
        # A ShardProgram: its class belongs to a higher layer.
        if opened.n_levels == MAX_SHARD_LEVELS:
            raise ValueError(f"shards lie deeper in each other than {MAX_SHARD_LEVELS}")
        shapes.append(self.chunk_shape)
        self.chunk_shape = program.chunk_shape
        opened.levels[opened.n_levels] = <void *>program
        for d in range(opened.ndim):
            opened.level_chunks[opened.n_levels][d] = self.chunk_shape[d]
        opened.n_levels += 1
        program = program.program if program.inner is None else program.inner
    opened.program = NULL if program is None else <void *>program
    return shapes


cdef int _set_grid(OpenArray self) except -1:
    cdef Opened *opened = self.opened
    cdef Edges unequal
    cdef int d
    opened.is_irregular = self.edges is not None and not self.shard_shapes
    for d in range(opened.ndim):
        opened.shape[d] = self.shape[d]
        opened.chunk_shape[d] = self.chunk_shape[d]
        opened.object_shape[d] = self.shard_shapes[0][d] if self.shard_shapes else self.chunk_shape[d]
        assert opened.object_shape[d] % opened.chunk_shape[d] == 0
        unequal = None if self.edges is None else self.edges[d]
        opened.runs[d] = NULL
        if unequal is not None:
            assert unequal.total >= opened.shape[d] and unequal.longest == opened.object_shape[d]
            opened.runs[d] = unequal.table
            opened.n_runs[d] = unequal.n_runs
    return 0


cdef int _set_elements(OpenArray self, bytes fill, bytes stored_fill, int64_t swap, object order) except -1:
    cdef Opened *opened = self.opened
    cdef int i
    opened.itemsize = len(fill)
    opened.fill = fill
    opened.stored_fill = stored_fill
    assert swap <= 8
    opened.swap = swap
    opened.is_c_order = swap == 0 and order is None
    for i in range(opened.ndim):
        opened.order[i] = i if order is None else order[i]
        assert 0 <= opened.order[i] < opened.ndim
    return 0


cdef int _set_keys(OpenArray self, tuple template) except -1:
    cdef Opened *opened = self.opened
    cdef bytes head, separator, tail
    head, separator, tail = template
    opened.head, opened.n_head = head, <int>len(head)
    opened.separator, opened.n_separator = separator, <int>len(separator)
    opened.tail, opened.n_tail = tail, <int>len(tail)
    return _check_keys(self)


cdef int _check_keys(OpenArray self) except -1:
    cdef const Opened *opened = self.opened
    if opened.n_head + opened.n_tail + opened.ndim * (MAX_DIGITS + opened.n_separator) >= MAX_KEY:
        raise ValueError("chunk keys of this array would be too long")
    return 0


cdef int _set_document(OpenArray self, bytes document, identity, bytes content) except -1:
    cdef Opened *opened = self.opened
    cdef Identity *known = &opened.identity
    if document is not None:
        opened.document = document
    opened.has_identity = identity is not None
    if identity is not None:
        known.device, known.inode, known.size, known.mtime_ns, known.ctime_ns = identity
    opened.n_content = -1
    if content is not None:
        opened.content, opened.n_content = content, <int64_t>len(content)
    return 0


# the document of an open array, while its objects are read

cdef enum:
    MAX_PATH = 4096            # with the final zero; the system refuses longer paths, too
    TRUSTED_AGE_NS = 2_000_000_000         # reason: see `views.TRUSTED_AGE_NS`


cdef bint _path_of(const Opened *opened, char *path) noexcept nogil:
    cdef size_t n, n_name
    if opened.directory == NULL or opened.document == NULL or not opened.has_identity:
        return False
    n = strlen(opened.directory)
    n_name = strlen(opened.document) + 1
    if n + 1 + n_name > MAX_PATH:
        return False
    memcpy(path, opened.directory, n)
    path[n] = c"/"
    memcpy(path + n + 1, opened.document, n_name)
    return True


cdef int document_hold(const Opened *opened) noexcept nogil:
    cdef char path[MAX_PATH]
    cdef Identity identity
    cdef int fd
    if not _path_of(opened, path):
        return -1
    fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    if fd >= 0 and not (identify_fd(fd, &identity) == 0 and same_identity(&identity, &opened.identity)
                        and (opened.n_content < 0 or object_has(fd, opened.content, opened.n_content))):
        close(fd)
        fd = -1
    return fd


cdef bint document_stands(const Opened *opened) noexcept nogil:
    cdef char path[MAX_PATH]
    cdef Identity now
    return (_path_of(opened, path) and identify_name(AT_FDCWD, path, &now) == 0
            and same_identity(&now, &opened.identity))


cdef bint document_is_old(const Opened *opened) noexcept nogil:
    return zc_wall_ns() - max(opened.identity.mtime_ns, opened.identity.ctime_ns) > TRUSTED_AGE_NS
