# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reads of single elements from cached chunks.

Compiled, and apart from plans, so that a loop over ``a[i, j]`` waits only for the system: one call for the identity of
the object, one for the identity of the document, and between them the copy of an item. All other cases (another
selection, a chunk that is not cached, a replaced document) return None, and the caller makes a plan.
"""
cimport cython
cimport numpy as cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, strlen
from posix.fcntl cimport AT_FDCWD

from zcore.kernel.cache.chunks cimport ChunkCache
from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, copy_run
from zcore.kernel.io.files cimport Identity, identify_name, same_identity
from zcore.kernel.select.grid cimport Span
from zcore.kernel.cache.lru cimport Kept, kept_release
from zcore.kernel.select.open_array cimport MAX_KEY
from zcore.kernel.select.tasks cimport Tasks

cdef extern from "numpy/arrayobject.h":
    object PyArray_Scalar(void *data, cnp.dtype descr, void *base)

cnp.import_array()

cdef enum:
    MAX_ITEM_NBYTES = 64
    MAX_PATH = 4096


@cython.final
cdef class Elements:
    """Reads the elements of one array, one at a time.

    Parameters
    ----------
    tasks : Tasks
        Tasks of the whole array. Its chunks have one shape and one object each, in a directory with a document.
    dtype : numpy.dtype
        Type of an element as the caller gets it; not one with fields.
    chunks : ChunkCache
    form : int
        See `ReadPlan.keep`.
    ticket : int
        Ticket of the view whose elements are read.

    Notes
    -----
    If the items or the path are too long, `get` returns None.
    """

    cdef Tasks tasks
    cdef cnp.dtype dtype
    cdef ChunkCache chunks
    cdef int64_t form
    cdef Copy item
    cdef bint is_bool
    cdef int64_t ticket
    cdef bint is_short
    cdef int n_directory
    cdef char path[MAX_PATH + MAX_KEY]     # the directory, followed by the name of an object
    cdef size_t n_document     # with the final zero

    def __init__(self, Tasks tasks not None, cnp.dtype dtype not None, ChunkCache chunks not None, int64_t form,
                 int64_t ticket):
        cdef size_t n_directory
        assert tasks.opened != NULL and tasks.opened.directory != NULL and tasks.opened.document != NULL
        n_directory = strlen(tasks.opened.directory)
        self.n_document = strlen(tasks.opened.document) + 1
        self.tasks = tasks
        self.dtype = dtype
        self.chunks = chunks
        self.form = form
        self.ticket = ticket
        self.is_short = (tasks.opened.itemsize <= MAX_ITEM_NBYTES and n_directory + 2 <= MAX_PATH
                         and self.n_document <= MAX_KEY)
        if not self.is_short:
            return
        self.item.ndim = 0
        self.item.itemsize = tasks.opened.itemsize
        self.item.swap = tasks.opened.swap
        self.is_bool = dtype.kind == "b"
        memcpy(self.path, tasks.opened.directory, n_directory)
        self.path[n_directory] = c"/"
        self.n_directory = <int>n_directory + 1

    def are_of(self, int64_t ticket, chunks):
        """Return whether these are the elements of the view with this ticket, cached in `chunks`."""
        return self.ticket == ticket and self.chunks is chunks

    def get(self, selection):
        """Return the element that integers select, a NumPy scalar; None if it needs a plan."""
        cdef Span spans[MAX_NDIM]
        cdef int64_t offset = 0
        cdef int64_t i
        cdef int d
        cdef int overflow = 0
        cdef uint8_t item[MAX_ITEM_NBYTES]
        cdef bint found
        if not self.is_short:
            return None
        if type(selection) is not tuple:
            selection = (selection,)
        if len(<tuple>selection) != self.tasks.ndim:
            return None
        for d in range(self.tasks.ndim):
            index = (<tuple>selection)[d]
            if not PyLong_CheckExact(index):
                return None
            i = PyLong_AsLongLongAndOverflow(index, &overflow)
            if i < 0:
                i += self.tasks.axes[d].length
            if overflow or not 0 <= i < self.tasks.axes[d].length:
                return None
            spans[d].chunk = i // self.tasks.axes[d].chunk
            offset += (i - spans[d].chunk * self.tasks.axes[d].chunk) * self.tasks.layout.strides[d]
        with nogil:
            found = self._read(spans, offset, item)
        return PyArray_Scalar(item, self.dtype, NULL) if found else None

    cdef bint _read(self, const Span *spans, int64_t offset, uint8_t *item) noexcept nogil:
        cdef char path[MAX_PATH + MAX_KEY]
        cdef Identity identity
        cdef Kept *kept
        memcpy(path, self.path, self.n_directory)
        self.tasks.key_of(spans, path + self.n_directory)
        if identify_name(AT_FDCWD, path, &identity) != 0:
            return False
        kept = self.chunks.find(&identity, 0, identity.size, self.form, self.tasks.layout.n_bytes, True)
        if kept == NULL:
            return False
        copy_run(&self.item, <const char *>kept.words + offset, <char *>item)
        kept_release(kept)
        if self.is_bool:
            # As in whole arrays: every byte except 0 is true.
            item[0] = item[0] != 0
        memcpy(path + self.n_directory, self.tasks.opened.document, self.n_document)
        return identify_name(AT_FDCWD, path, &identity) == 0 and same_identity(&identity, &self.tasks.opened.identity)
