"""The files of `numpy.save` and `numpy.savez` as sources and destinations of copies, never whole in memory.

A file is mapped for each read and write and let go of again, so that its pages do not add up. Members of ``.npz`` are
brought to a file of their own first. Objects are pickles there, which are neither read nor written.
"""
import contextlib
import errno
import os
import shutil
import tempfile
import zipfile

import numpy as np

from zcore.errors import MetadataError, NodeNotFoundError, SelectionError, StoreError, UnsupportedError
from zcore.model.metadata import has_varying_items
from zcore.stores.keys import TEMPORARY
from zcore.tools.source import Source, SourceArray, SourceGroup

_SUFFIX = ".npy"
_COPIED_NBYTES = 1 << 20


class NumpySource(Source):
    """A file ``.npy``, or ``.npz`` with its arrays as members of a group; see `zcore.tools.sources.StoreSource`."""

    def __init__(self, path, name, selection):
        self._members = None
        status = os.stat(path)
        self.identity = repr((os.path.abspath(path), status.st_ino, status.st_size, status.st_mtime_ns))
        if path.lower().endswith(_SUFFIX):
            if name:
                raise NodeNotFoundError(f"{path} holds one array, and no {name!r}", path=name)
            self.nodes = [("", _NumpyArray(path, lambda: path, selection))]
            return
        self._members = _Members(path)
        try:
            self.nodes = self._listed(path, name, selection)
        except BaseException:
            self.close()
            raise

    def _listed(self, path, name, selection):
        names = self._members.names
        if name in names:
            return [("", self._members.array(name, selection))]
        if name:
            raise NodeNotFoundError(f"{path} holds no array {name!r}", path=name)
        if selection is not None:
            raise SelectionError("a selection is one of an array, the source is a group")
        above = {part for member in names for part in _above(member)}
        found = {**{group: SourceGroup({}) for group in above},
                 **{member: self._members.array(member, None) for member in names}}
        return [("", SourceGroup({})), *sorted(found.items())]

    def close(self):
        if self._members is not None:
            self._members.close()


def _above(member):
    parts = member.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


class _Members:
    """The members of a file ``.npz``; the one that was asked for last lies in a file of its own."""

    def __init__(self, path):
        self._path = path
        self._folder = None
        self._brought = None
        try:
            with zipfile.ZipFile(path) as archive:
                self.names = [name.removesuffix(_SUFFIX) for name in archive.namelist() if name.endswith(_SUFFIX)]
        except (zipfile.BadZipFile, OSError) as exc:
            raise StoreError(f"{path} is no .npz file: {exc}") from exc

    def close(self):
        """Remove the file of the member."""
        if self._folder is not None:
            self._folder.cleanup()

    def array(self, name, selection):
        return _NumpyArray(f"{self._path}, {name}", lambda: self._file(name), selection)

    def _file(self, name):
        """Return the path of a file that holds a member."""
        if self._brought != name:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="zcore-copy-")
            self._brought = None
            with (zipfile.ZipFile(self._path) as archive, archive.open(name + _SUFFIX) as member,
                  open(os.path.join(self._folder.name, "member.npy"), "wb") as file):
                shutil.copyfileobj(member, file, _COPIED_NBYTES)
            self._brought = name
        return os.path.join(self._folder.name, "member.npy")


class _NumpyArray(SourceArray):
    """An array in a file; see `SourceArray`."""

    def __init__(self, what, file, selection):
        self._file = file
        try:
            found = mapped(file())
        except (ValueError, OSError, EOFError, SyntaxError, MemoryError) as exc:
            if "allow_pickle" in str(exc) or "Python objects" in str(exc):
                raise UnsupportedError(f"{what} holds pickled objects, which are never loaded",
                                       feature="pickled objects") from exc
            raise MetadataError(f"{what} is no array: {exc}") from exc
        super().__init__(found.shape, found.dtype, {}, selection)
        if found.ndim > 1 and found.flags.f_contiguous and not found.flags.c_contiguous:
            self.order = "F"

    def _read(self, box, out):
        out[...] = mapped(self._file())[slices_of(box)]


def mapped(path):
    """Return the array in a file, mapped, unless it has no elements to map."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        found = np.load(path, allow_pickle=False)
        if found.size > 1:
            raise
        return found


def slices_of(box):
    """Return the index that selects a box of an ndarray."""
    slices = []
    for start, step, n in zip(box.starts, box.steps, box.counts, strict=True):
        stop = start + step * n
        slices.append(slice(start, stop if stop >= 0 else None, step) if n else slice(0, 0))
    return (*slices, ...)


def _reserve(path):
    """Take the space of a file from the disk: where none is left for a page that is mapped, the process is killed."""
    if not hasattr(os, "posix_fallocate"):
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(fd, 0, os.fstat(fd).st_size)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        # File systems that cannot do so.
    finally:
        os.close(fd)


class NumpyTarget:
    """A new file ``.npy`` to be written to; see `zcore.tools.moved.StoredTarget`."""

    def __init__(self, path, shape, dtype, order):
        if has_varying_items(dtype):
            raise UnsupportedError(f"items of varying length ({dtype}) are pickles in a .npy file, which are never "
                                   "written", feature="pickled objects")
        self._path = path
        self.shape = shape
        self.dtype = dtype
        self.nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        self.object_shape = (1,) * len(shape)
        if self.nbytes and shape:
            np.lib.format.open_memmap(path, "w+", dtype, shape, fortran_order=order == "F")
            _reserve(path)
        else:
            np.save(path, np.zeros(shape, dtype), allow_pickle=False)

    def fill(self):
        """Return None: all elements are to be written."""
        return None

    def write(self, starts, values):
        if not self.shape:
            np.save(self._path, values, allow_pickle=False)
            return
        mapped = np.lib.format.open_memmap(self._path, "r+")
        mapped[tuple([slice(start, start + n) for start, n in zip(starts, values.shape, strict=True)])] = values


class NpySink:
    """A file ``.npy``, which holds one array."""

    def __init__(self, path, name, losses):
        if name:
            raise ValueError(f"a .npy file holds one array, which has no path; {name!r} was asked for")
        self._path = path
        self._losses = losses

    def group(self, name, source):
        raise UnsupportedError("a .npy file holds one array, and no group", feature="groups in .npy files")

    def array(self, name, source, wanted):
        """Make the new array, and return it as what is written to."""
        note_losses(name, source, self._losses)
        dtype = source.dtype if wanted.dtype is None else np.dtype(wanted.dtype)
        return NumpyTarget(self._path, source.shape, dtype, wanted.order or source.order)

    def end(self, name):
        """Finish the array that was made last."""

    def close(self):
        """Finish the file, which is so after each write."""

    discard = close


class NpzSink:
    """A file ``.npz``: its members are files ``.npy`` that are written one after the other."""

    def __init__(self, path, name, losses):
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self._folder = tempfile.TemporaryDirectory(prefix=f"{TEMPORARY}copy.", dir=os.path.dirname(path))
        self._file = os.path.join(self._folder.name, "member.npy")
        self._name = name
        self._losses = losses

    def group(self, name, source):
        """Note what a group loses: it is no more than a part of names."""
        if source.attributes:
            self._losses.note(f"attributes ({', '.join(source.attributes)})", name)

    def array(self, name, source, wanted):
        note_losses(name, source, self._losses)
        dtype = source.dtype if wanted.dtype is None else np.dtype(wanted.dtype)
        return NumpyTarget(self._file, source.shape, dtype, wanted.order or source.order)

    def end(self, name):
        name = "/".join(part for part in (self._name, name) if part) or "arr_0"
        self._archive.write(self._file, name + _SUFFIX)
        os.unlink(self._file)

    def close(self):
        self._archive.close()

    def discard(self):
        """Let go of a file that is not finished, and remove what a member was written to."""
        with contextlib.suppress(OSError, ValueError):
            self._archive.close()
        self._folder.cleanup()


def note_losses(name, source, losses):
    """Note what of an array is more than its elements."""
    if source.attributes:
        losses.note(f"attributes ({', '.join(source.attributes)})", name)
    if source.dimension_names is not None:
        losses.note(f"names of dimensions ({', '.join(map(str, source.dimension_names))})", name)
