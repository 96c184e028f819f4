"""An array comes into being, changes its shape, and goes; always in an order that no kill can turn into wrong data.

========  ==========================================================================================================
create    left-overs erased, attributes, then the metadata document: a node exists from its last write on
delete    the document first, then the rest; to overwrite is to delete and to create
shrink    the document first, then objects outside are erased and border objects reset beyond the new shape
grow      objects outside the old shape erased and border objects reset beyond it, whoever wrote them, then the document
append    the data, then the document
========  ==========================================================================================================

Each step runs under the whole-range lock of the document, or, while there is none, under a lock of the directory.
What is in the way is found by listing the objects that exist, never by probing the chunks of the grid.
"""
import contextlib
import errno
import os
import weakref

from zcore.engine import Binding
from zcore.errors import LockError, NodeExistsError, ReadOnlyError, StoreError, ZcoreError
from zcore.formats.json_documents import MAX_NBYTES
from zcore.kernel.fileio import TEMP_PREFIX
from zcore.kernel.locks import locks_of
from zcore.selection import Box, whole
from zcore.stores.keys import prefix_of

# A directory that is missing when it has been made was pruned by another process; one after the other, or the file
# system takes none there, as /proc does.
_MAX_TRIES = 100


def create(store, path, format, metadata, attributes, options, *, overwrite=False):
    """Create an array and return its `Binding`.

    Parameters
    ----------
    store : Store
    path : str
    format : module
    metadata : ArrayMetadata
    attributes : dict or None
    options : Options
    overwrite : bool
        Replace an array that stands there.

    Raises
    ------
    NodeExistsError
        An array stands there, and `overwrite` is false.
    """
    prefix = prefix_of(path)
    if store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: no array can be created", key=prefix + format.array_document)
    document = format.render_array(metadata)
    attributes_document = format.render_attributes(attributes) if attributes else None
    with _place(store, path, format, options):
        if store.exists(prefix + format.array_document):
            if not overwrite:
                raise NodeExistsError(f"an array stands at {store.describe(path)} already", path=path)
            _delete_document(store, path, format, options)
        _erase_rest(store, prefix, format)
        store.make_directory(f"{prefix}{format.chunk_directory}/")
        if attributes_document is not None:
            store.set(prefix + format.attributes_document, attributes_document)
        store.set(prefix + format.array_document, document)
    return Binding(store, path, format, options)


def delete(store, path, format, options):
    """Delete the array at `path`; one that is gone already is no error."""
    with _place(store, path, format, options):
        _delete_document(store, path, format, options)
        _erase_rest(store, prefix_of(path), format)


def _delete_document(store, path, format, options):
    """Take the document away while nobody writes an object; from then on there is no array."""
    document = prefix_of(path) + format.array_document
    if not options.lock:
        store.erase(document)
        return
    with contextlib.suppress(FileNotFoundError), store.locks(path, format.array_document).whole():
        store.erase(document)


def _erase_rest(store, prefix, format):
    """Erase what an array leaves behind, and nothing that is not the format's."""
    store.erase(prefix + format.attributes_document)
    store.erase_prefix(f"{prefix}{format.chunk_directory}/")


@contextlib.contextmanager
def _place(store, path, format, options):
    """Keep others from creating or deleting a node at `path`.

    There is no document to lock yet, so it is the directory that is locked (`flock`). A file of ours keeps it from
    being pruned meanwhile. Where there are no files, nobody but the threads of this process has to be kept out.
    """
    if not options.lock:
        yield
        return
    directory = store.locks(path, format.array_document).directory
    if directory is None:
        with locks_of((id(store), path, "place")).whole():
            yield
        return
    for _ in range(_MAX_TRIES):
        place = _Place()
        try:
            if place.take(store, path, directory):
                yield
                return
        finally:
            place.give_back()
    raise StoreError(f"cannot create {directory}: no directory, or no file in it, is there when it has been made",
                     key=directory, errno=errno.ENOENT)


class _Place:
    """A directory that is locked, and a file in it that keeps it from being pruned.

    A signal handler may raise before `give_back` is reached, or in it: what is held goes with the last reference at the
    latest, or the process would wait for itself when it creates the next array here.
    """

    __slots__ = ("fcntl", "fd", "keeper", "__weakref__")

    def __init__(self):
        import fcntl

        # At the exit of the interpreter it could not be imported any more.
        self.fcntl = fcntl
        self.fd = -1
        self.keeper = None
        _places.add(self)

    def take(self, store, path, directory):
        """Lock the directory of a node, which is made if it is missing; False when the name leads elsewhere by then."""
        store.make_directory(prefix_of(path))
        try:
            self.fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Pruned between the two.
            return False
        except OSError as exc:
            raise StoreError(f"cannot open {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc
        self._lock(directory)
        return self._keep(directory)

    def _lock(self, directory):
        try:
            self.fcntl.flock(self.fd, self.fcntl.LOCK_EX)
        except OSError as exc:
            raise LockError(f"cannot lock directory {directory}: {exc.strerror}; lock=None writes without locks",
                            key=directory, errno=exc.errno) from exc

    def _keep(self, directory):
        keeper = os.path.join(directory, TEMP_PREFIX + os.urandom(8).hex())
        try:
            if not os.path.samestat(os.fstat(self.fd), os.stat(directory)):
                return False
            # Noted before it is made, as a signal may come between the two.
            self.keeper = keeper
            os.close(os.open(keeper, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return True
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise StoreError(f"cannot write in {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def give_back(self):
        """Give back what is held, if anything."""
        if self.keeper is not None:
            # One that stays is never listed, and removed with other left-overs.
            with contextlib.suppress(OSError):
                os.unlink(self.keeper)
            self.keeper = None
        if self.fd >= 0:
            # Unlocked before it is closed: a fork may have copied the descriptor, and with it the lock.
            with contextlib.suppress(OSError):
                self.fcntl.flock(self.fd, self.fcntl.LOCK_UN)
            fd, self.fd = self.fd, -1
            os.close(fd)

    __del__ = give_back


def _after_fork_in_child():
    """Close the copies of descriptors, or a lock of the parent would live as long as the child does."""
    for place in list(_places):
        # The file is the parent's.
        place.keeper = None
        fd, place.fd = place.fd, -1
        if fd >= 0:
            os.close(fd)


_places = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork_in_child)


def resize(binding, shape):
    """Give an array another shape; elements that stay keep their values, new ones have the fill value.

    Costs what the objects at the border and outside cost, and a listing of those that exist.

    Raises
    ------
    ValueError
        The number of dimensions differs, or a length is negative.
    """
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        old, shape = metadata.shape, tuple(shape)
        if len(shape) != len(old):
            raise ValueError(f"array has {len(old)} dimensions, the new shape {shape} has {len(shape)}")
        metadata = metadata.replace(shape=shape)
        new = metadata.shape
        if any(a > b for a, b in zip(new, old, strict=True)):
            _reset_outside(binding, exclusive, old)
        if new != old:
            exclusive.replace_metadata(metadata)
        if any(a < b for a, b in zip(new, old, strict=True)):
            _reset_outside(binding, exclusive, new)


def append(binding, values, axis):
    """Add `values`, an ndarray of the stored type, behind the last elements along `axis`; return the new shape.

    Appends of several threads and processes come one after the other, each whole. A kill leaves the old length.
    """
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        if values.dtype != metadata.dtype or not axis < metadata.ndim:
            raise StoreError(f"{binding.document}: the array was replaced by another one since it was opened; open it "
                             "again", key=binding.document)
        old = metadata.shape
        if values.ndim != len(old) or values.shape != old[:axis] + values.shape[axis:axis + 1] + old[axis + 1:]:
            raise ValueError(f"array has shape {old}, cannot append values of shape {values.shape} along axis {axis}")
        metadata = metadata.replace(shape=old[:axis] + (old[axis] + values.shape[axis],) + old[axis + 1:])
        starts = tuple([old[d] if d == axis else 0 for d in range(len(old))])
        box = Box(starts, (1,) * len(old), values.shape)
        # Every object that the new elements touch is replaced or erased, so nothing old shows in them.
        exclusive.write(box, values, metadata=metadata, old_shape=old)
        exclusive.replace_metadata(metadata)
        return metadata.shape


def _reset_outside(binding, exclusive, shape):
    """Erase the objects outside of `shape` and give the fill value to what border objects hold beyond it."""
    metadata = exclusive.metadata.replace(shape=shape)
    chunk_shape, grid = metadata.chunk_shape, metadata.grid_shape
    border = []
    for key, coords in list(binding.stored_chunks()):
        if any(i >= n for i, n in zip(coords, grid, strict=True)):
            binding.store.erase(key)
        elif any((i + 1) * c > n for i, c, n in zip(coords, chunk_shape, shape, strict=True)):
            task = 0
            for i, n in zip(coords, grid, strict=True):
                task = task * n + i
            border.append(task)
    if border:
        exclusive.write(whole(shape), None, metadata=metadata, old_shape=shape, tasks=border)


def change_attributes(binding, change):
    """Change the attributes by ``change(attributes)``, a dict, in one write that loses no other; return its result."""
    key = binding.prefix + binding.format.attributes_document
    with binding.exclusive():
        attributes = read_attributes(binding)
        result = change(attributes)
        binding.store.set(key, binding.format.render_attributes(attributes))
    return result


def read_attributes(binding):
    """Return the attributes as they are stored now, a new dict."""
    try:
        raw = binding.store.get(binding.prefix + binding.format.attributes_document, (0, MAX_NBYTES + 1))
        return binding.format.parse_attributes(raw, binding.path)
    except ZcoreError as error:
        error.locate(binding.describe())
        raise
