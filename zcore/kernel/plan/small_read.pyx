# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Small reads of one array, one after the other: elements, rows, single chunks.

Compiled, and apart from the engine, so that a loop over ``a[i, j]`` or ``a[i, j:j + 10]`` waits for the system and for
the codecs, not for Python. The plans are made once, and each call sets the box of an idle one. Objects are opened by
their whole path, so no directory is opened or kept open.

Everything else (another kind of selection, a replaced document, a damaged chunk, a large result) is left to the engine:
`SmallReads.get` returns None, and the caller reads in the general way, which raises the errors.
"""
from functools import partial

cimport cython
cimport numpy as cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check, PyLong_CheckExact
from cpython.number cimport PyIndex_Check
from cpython.ref cimport Py_INCREF, PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.stdint cimport int64_t, uint8_t
from posix.fcntl cimport AT_FDCWD

from zcore.kernel.atomics cimport zc_load
from zcore.kernel.plan.cache cimport ChunkCache, Kept, kept_release
from zcore.kernel.io.files cimport Identity, identify_name
from zcore.kernel.select.open_array cimport MAX_KEY, OpenArray, Opened, document_stands
from zcore.kernel.plan.plan cimport PlanOptions, PlanPool, run_anew
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.select.box import whole
from zcore.kernel.select.grid cimport Span
from zcore.kernel.select.tasks cimport Selected, Tasks
from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, copy_run

cdef extern from "numpy/arrayobject.h":
    object PyArray_Scalar(void *data, cnp.dtype descr, void *base)
    cnp.ndarray PyArray_Empty(int ndim, cnp.npy_intp *shape, cnp.dtype descr, int is_fortran)
    bint PyArray_IsIntegerScalar(object value)
    const char NPY_OPPBYTE     # "<" or ">": the other order than that of this machine, which NumPy calls "="

cdef extern from "Python.h":
    const int64_t MAX_INDEX "PY_SSIZE_T_MAX"
    ctypedef struct PySliceObject:
        PyObject *start
        PyObject *stop
        PyObject *step

cnp.import_array()

cdef enum:
    MAX_ITEM_NBYTES = 64
    MAX_CALLS = 8              # calls of more threads at the same time are left to the engine
    MAX_NBYTES = 1 << 20       # of a result

# For the engine: a larger result is no reason to prepare small reads.
SMALL_NBYTES = MAX_NBYTES


@cython.final
cdef class SmallReads:
    """Reads small parts of one array.

    Parameters
    ----------
    array : OpenArray
        Has a directory, a document and its identity, which no other document can have; its program runs without Python.
    dtype : numpy.dtype
        Type of an element as the caller gets it; not one with fields, nor of elements of varying length.
    chunks : ChunkCache or None
        Cache for decoded chunks; while its capacity is 0, it is not asked.
    form : int
        See `ReadPlan.keep`.
    threads : callable
        Returns the number of threads of a read. It is called only if a chunk is worth more than one.

    Raises
    ------
    ValueError
        The path of the directory is too long.
    """

    cdef OpenArray array
    cdef const Opened *opened
    cdef cnp.dtype dtype
    cdef ChunkCache chunks
    cdef int64_t form
    cdef object threads
    cdef bint is_shared        # a chunk is worth several threads
    cdef bint has_elements     # a cached chunk is a whole object
    cdef Copy item
    cdef Tasks tasks           # keys and layout of chunks, for cached elements
    cdef PlanPool plans

    def __init__(self, OpenArray array not None, cnp.dtype dtype not None, ChunkCache chunks, int64_t form, threads):
        cdef ReadPlan plan
        assert array.opened.directory != NULL and array.opened.document != NULL and array.opened.has_identity
        self.array = array.rooted()
        self.opened = self.array.opened
        self.dtype = dtype
        self.chunks = chunks
        self.form = form
        self.threads = threads
        self.plans = PlanPool(partial(_new_plan, self.array), MAX_CALLS)
        self.tasks = plan = _new_plan(self.array)
        self.is_shared = plan.program.inner_threads(2, plan.layout.n_bytes, False) > 1
        self.has_elements = self.opened.n_levels == 0 and not self.opened.is_irregular
        self.item.ndim = 0
        self.item.itemsize = self.opened.itemsize
        self.item.swap = self.opened.swap

    def get(self, selection):
        """Return what ``a[selection]`` returns, or None if it is left to the engine, as is all that is wrong."""
        cdef Selected box
        cdef bint is_kept[MAX_NDIM]
        cdef cnp.npy_intp shape[MAX_NDIM]
        cdef int64_t strides[MAX_NDIM]
        cdef uint8_t item[MAX_ITEM_NBYTES]
        cdef char *data = <char *>item
        cdef int64_t n_bytes = self.opened.itemsize
        cdef int64_t i
        cdef int ndim = 0
        cdef int d
        cdef cnp.ndarray out = None
        if not _select(self, selection, &box, is_kept):
            return None
        for d in range(self.opened.ndim):
            # No overflow: both factors are at most MAX_NBYTES.
            if n_bytes > MAX_NBYTES or box.counts[d] > MAX_NBYTES:
                return None
            n_bytes *= box.counts[d]
            strides[d] = 0
            if is_kept[d]:
                shape[ndim] = box.counts[d]
                ndim += 1
        if n_bytes > (MAX_NBYTES if ndim else MAX_ITEM_NBYTES):
            return None
        if ndim == 0 and _find_element(self, &box, item):
            return PyArray_Scalar(item, self.dtype, NULL) if _are_characters(self, data, n_bytes) else None
        if ndim:
            Py_INCREF(self.dtype)      # the reference goes to the array
            out = PyArray_Empty(ndim, shape, self.dtype, 0)
            data = <char *>cnp.PyArray_DATA(out)
            i = ndim
            for d in reversed(range(self.opened.ndim)):
                if is_kept[d]:
                    i -= 1
                    strides[d] = cnp.PyArray_STRIDE(out, <int>i)
        if not _read(self, &box, data, strides) or not _are_characters(self, data, n_bytes):
            return None
        if self.dtype.kind == c"b":
            # As in whole arrays: every byte except 0 is true.
            for i in range(n_bytes):
                data[i] = data[i] != 0
        return out if ndim else PyArray_Scalar(item, self.dtype, NULL)


def _new_plan(OpenArray array not None):
    cdef ReadPlan plan = ReadPlan(array, whole((0,) * array.opened.ndim), None, PlanOptions(opens_files=False))
    plan.dirfd = AT_FDCWD
    return plan


cdef bint _are_characters(SmallReads self, const char *data, int64_t n_bytes) noexcept:
    """Whether these elements have no code points above 0x10FFFF, if they are text; the engine raises the error."""
    cdef bint is_other = self.dtype.byteorder == NPY_OPPBYTE
    cdef int first = 0 if is_other == (NPY_OPPBYTE == c">") else 3
    cdef int second = 1 if first == 0 else 2
    cdef int64_t i
    if self.dtype.kind == c"U":
        for i in range(0, n_bytes - 3, 4):
            if data[i + first] != 0 or <uint8_t>data[i + second] > 0x10:
                return False
    return True


cdef bint _select(SmallReads self, object selection, Selected *box, bint *is_kept) except -1:
    """Set the box of a selection, and which dimensions the result keeps: those that no integer indexes.

    Return False if anything else than integers and slices selects, if the box is empty, or if an index is wrong.
    """
    cdef tuple indices = <tuple>selection if type(selection) is tuple else (selection,)
    cdef Py_ssize_t n_given = len(indices)
    cdef Py_ssize_t start, stop, step
    cdef int overflow = 0
    cdef int d
    if n_given > self.opened.ndim:
        return False
    for d in range(self.opened.ndim):
        box.starts[d] = 0
        box.steps[d] = 1
        box.counts[d] = self.opened.shape[d]
        is_kept[d] = True
        if d < n_given:
            index = indices[d]
            if type(index) is slice:
                if not _is_plain(index) or self.opened.shape[d] > MAX_INDEX:
                    return False
                PySlice_Unpack(index, &start, &stop, &step)
                box.counts[d] = PySlice_AdjustIndices(self.opened.shape[d], &start, &stop, step)
                box.starts[d] = start
                if box.counts[d] > 1:
                    box.steps[d] = step
            elif _is_integer(index):
                box.starts[d] = PyLong_AsLongLongAndOverflow(index, &overflow)
                if box.starts[d] < 0:
                    box.starts[d] += self.opened.shape[d]
                if overflow or not 0 <= box.starts[d] < self.opened.shape[d]:
                    return False
                box.counts[d] = 1
                is_kept[d] = False
            else:
                return False
        if box.counts[d] == 0:
            return False
    return True


cdef bint _find_element(SmallReads self, const Selected *box, uint8_t *item) noexcept:
    """Read one element from a cached chunk, without a plan; return whether that was possible."""
    cdef Span spans[MAX_NDIM]
    cdef char key[MAX_KEY]
    cdef int64_t offset = 0
    cdef int64_t chunk
    cdef int d
    cdef bint found = False
    cdef Identity identity
    cdef Kept *kept = NULL
    if not self.has_elements or self.chunks is None or zc_load(&self.chunks.max_nbytes) == 0:
        return False
    with nogil:
        for d in range(self.opened.ndim):
            chunk = self.opened.chunk_shape[d]
            spans[d].chunk = box.starts[d] // chunk
            offset += (box.starts[d] - spans[d].chunk * chunk) * self.tasks.layout.strides[d]
        self.tasks.key_of(spans, key)
        if identify_name(AT_FDCWD, key, &identity) == 0:
            kept = self.chunks.find(&identity, 0, identity.size, self.form, self.tasks.layout.n_bytes, True)
        if kept != NULL:
            copy_run(&self.item, <const char *>kept.words + offset, <char *>item)
            kept_release(kept)
            found = document_stands(self.opened)
    if found and self.dtype.kind == c"b":
        item[0] = item[0] != 0
    return found


cdef bint _read(SmallReads self, const Selected *box, char *data, const int64_t *strides) except -1:
    """Read a box to `data`; return whether that was done."""
    cdef int n_threads = self.threads() if self.is_shared else 1
    cdef bint done = False
    cdef void *plan = self.plans.borrow()
    if plan == NULL:
        return False
    try:
        if self.chunks is not None and ((<ReadPlan>plan).chunks is None) == (zc_load(&self.chunks.max_nbytes) > 0):
            _change_cache(self, <ReadPlan>plan)
        with nogil:
            done = (run_anew(<ReadPlan>plan, box, data, strides, n_threads, False) and document_stands(self.opened))
    finally:
        self.plans.give_back(plan)
    return done


cdef int _change_cache(SmallReads self, ReadPlan plan) except -1:
    """Let an idle plan use the cache, or not, since its capacity was changed."""
    if zc_load(&self.chunks.max_nbytes):
        plan.keep(self.chunks, self.form)
    else:
        plan.chunks = None
        plan.keeps = False
    return 0


cdef bint _is_integer(object index):
    """Whether it is an int or an integer of NumPy; a bool is a mask, and a duration, an integer to NumPy, no index."""
    return PyLong_CheckExact(index) or (
        not PyLong_Check(index) and PyArray_IsIntegerScalar(index) and PyIndex_Check(index))


cdef bint _is_plain(object index):
    """Whether the bounds of a slice are integers, or left out, and its step is not 0."""
    cdef PySliceObject *bounds = <PySliceObject *>index
    return (_is_bound(<object>bounds.start) and _is_bound(<object>bounds.stop) and _is_bound(<object>bounds.step)
            and (<object>bounds.step is None or <object>bounds.step != 0))


cdef bint _is_bound(object bound):
    return bound is None or _is_integer(bound)
