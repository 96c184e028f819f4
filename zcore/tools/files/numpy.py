"""The files of `numpy.save` and `numpy.savez` as sources and destinations of copies, never whole in memory.

The compiled code reads elements where they lie in the file. A member of ``.npz`` has a checksum, which proves it only
after its last byte. So the whole member is checked before its elements are read, and a deflated one is unpacked to a
temporary file meanwhile.

Headers are parsed here, because NumPy's parser takes any size and lets any error through. Objects are pickles in these
files: they are neither read nor written.
"""
from __future__ import annotations

import ast
import contextlib
import math
import operator
import os
import re
import tempfile
import warnings
import zipfile
from collections import namedtuple
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zcore import config, workers
from zcore.buffers import strides_of
from zcore.descriptors import duplicate, identity_of, open_descriptor, write_at
from zcore.engine.options import MAX_THREADS
from zcore.errors import (
    CodecError,
    InvalidKeyError,
    KeyConflictError,
    MetadataError,
    NodeNotFoundError,
    SelectionError,
    TruncatedError,
    UnsupportedError,
)
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import LayoutReadPlan
from zcore.kernel.select.open_array import OpenArray
from zcore.model.metadata import has_varying_items
from zcore.ranges import LocalFile
from zcore.stores import openers
from zcore.stores.directory.staged import faults
from zcore.stores.keys import TEMPORARY, above
from zcore.stores.zip.members import Member, MemberReader, check_name, read_members
from zcore.tools.copy.sources import Source, SourceArray, SourceGroup
from zcore.tools.copy.transfer import Sink, Target

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from zcore.tools.copy.translate import CopyRequest, Losses
    from zcore.typing import Order, Selection

_SUFFIX = ".npy"
_PIECE_NBYTES = 1 << 20
_MAX_HEADER = 10_000     # characters, as in `numpy.load`
# Integers as Python 2 wrote them in a shape.
_LONG = re.compile(r"(?<=\d)L(?=[,)])")

_Header = namedtuple("_Header", ("shape", "dtype", "order"))


class NumpySource(Source):
    """A file ``.npy``, or ``.npz`` with its arrays as members of a group; see `zcore.tools.copy.sources`."""

    def __init__(self, path: str, name: str, selection: Selection, threads: int | None) -> None:
        self.nodes: list[tuple[str, SourceGroup | SourceArray]]
        self.left_out: list[tuple[str, str]]
        self._file = _NumpyFile(path, threads)
        try:
            status = self._file.source.status()
            self.identity: str = repr((os.path.abspath(path), identity_of(status)[1:]))
            if openers.kind_of(path) is openers.NPY:
                if name:
                    raise NodeNotFoundError(f"{path} holds one array, and none called {name!r}", path=name)
                member = Member(0, 0, status.st_size, status.st_size, None, False, None)
                self.nodes = [("", _NumpyArray(self._file, "", member, selection))]
            else:
                self.nodes = self._members(path, name, selection)
        except BaseException:
            self.close()
            raise

    def _members(self, path, name, selection) -> list[tuple[str, SourceGroup | SourceArray]]:
        members = read_members(self._file.source)
        self.left_out = [("files that are not arrays", key) for key in members if not key.endswith(_SUFFIX)]
        arrays = {key.removesuffix(_SUFFIX): (key, member) for key, member in members.items() if key.endswith(_SUFFIX)}
        if name:
            if name not in arrays:
                raise NodeNotFoundError(f"{path} holds no array {name!r}", path=name)
            return [("", _NumpyArray(self._file, *arrays[name], selection))]
        if selection is not None:
            raise SelectionError("a selection needs an array, the source is a group")
        groups = set()
        for member in arrays:
            if not member or member.endswith("/"):
                raise InvalidKeyError(f"{path}: the member {arrays[member][0]!r} has no name before its ending",
                                      key=arrays[member][0])
            groups.update(above(member)[:-1])
        for member in sorted(groups.intersection(arrays)):
            raise KeyConflictError(f"{path}: {member!r} is an array, and other arrays lie below that name", key=member)
        found: dict[str, SourceGroup | SourceArray] = {
            **{group: SourceGroup({}) for group in groups},
            **{member: _NumpyArray(self._file, *place, None) for member, place in arrays.items()}}
        return [("", SourceGroup({})), *sorted(found.items())]

    def close(self) -> None:
        self._file.close()


class _NumpyFile:
    """A file that is open for reading, and the member that was last checked as a whole."""

    _unpacked = None

    def __init__(self, path, threads):
        self.path = path
        self.n_threads = min(threads or config.threads, MAX_THREADS)
        self._checked = None
        self.source = LocalFile(path)

    def close(self):
        """Close the file, and remove an unpacked member."""
        self._forget()
        self.source.close()

    def _forget(self):
        unpacked, self._unpacked, self._checked = self._unpacked, None, None
        if unpacked is not None:
            with contextlib.suppress(OSError):
                unpacked.close()

    def place_of(self, key, member):
        """Check a whole member, and return the descriptor and offset of its bytes."""
        if member.crc is not None and self._checked != key:
            self._forget()
            reader = MemberReader(self.source, key, member)
            with faults(f"unpack {key!r} of {self.path} to", tempfile.gettempdir()):
                if member.is_deflated:
                    self._unpacked = tempfile.TemporaryFile(prefix="zcore-copy-")
                while data := reader.read(_PIECE_NBYTES):
                    if member.is_deflated:
                        self._unpacked.write(data)
                if member.is_deflated:
                    self._unpacked.flush()
            self._checked = key
        return (self._unpacked.fileno(), 0) if member.is_deflated else (self.source.fd, member.offset)


class _NumpyArray(SourceArray):
    """An array in a file; see `SourceArray`."""

    def __init__(self, file, key, member, selection):
        self._file = file
        self._key = key
        self._member = member
        self.place = f"{file.path}: {key}" if key else file.path
        reader = MemberReader(file.source, key, member)
        header = _read_header(reader, self.place)
        self._offset = reader.position
        self._stored_shape = header.shape
        n_expected = self._offset + math.prod(header.shape) * header.dtype.itemsize
        if member.n_bytes != n_expected:
            error = TruncatedError if member.n_bytes < n_expected else CodecError
            raise error(f"{self.place}: expected a header and elements of {n_expected} bytes, found {member.n_bytes}",
                        key=self.place, expected=n_expected, found=member.n_bytes)
        super().__init__(header.shape, header.dtype, {}, selection)
        self.order = header.order
        if member.is_deflated:
            self.nbytes_stored = member.n_stored

    def _read(self, box, out):
        if not out.nbytes:
            return
        fd, offset = self._file.place_of(self._key, self._member)
        shape, itemsize, n_threads = self._stored_shape, self.dtype.itemsize, self._file.n_threads
        array = OpenArray(shape, shape, program=None, fill=bytes(itemsize), template=(b"", b"", b""))
        try:
            plan = LayoutReadPlan(array, box, out, PlanOptions(n_threads=n_threads), source=partial(duplicate, fd),
                                  offset=offset + self._offset, strides=strides_of(shape, itemsize, self.order),
                                  name=self.place)
        except OSError as exc:
            raise self._file.source.fault("read", exc) from exc
        workers.run(plan.run, n_threads, plan.cancel)
        plan.raise_failure(())


def _read_header(reader, what):
    """Return the `_Header` that a reader begins with.

    Raises
    ------
    MetadataError
        The bytes are not a header.
    UnsupportedError
        The elements are pickled objects, or the version is newer.

    Notes
    -----
    NEP 1, "Format Specification", versions 1.0 to 3.0.
    """
    form = np.lib.format
    start = reader.read(form.MAGIC_LEN)
    if start[:-2] != form.MAGIC_PREFIX:
        raise MetadataError(f"{what} is not a .npy array: expected {form.MAGIC_PREFIX!r} at its beginning, found "
                            f"{start[:-2]!r}")
    version = tuple(start[-2:])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise UnsupportedError(f"{what}: version {version[0]}.{version[1]} of the .npy format",
                               feature=".npy files of other versions")
    n_expected = int.from_bytes(reader.read(2 if version == (1, 0) else 4), "little")
    if n_expected > _MAX_HEADER:
        raise MetadataError(f"{what}: expected a header of up to {_MAX_HEADER} bytes, found {n_expected}")
    raw = reader.read(n_expected)
    if len(raw) < n_expected:
        raise MetadataError(f"{what}: expected a header of {n_expected} bytes, found {len(raw)}")
    try:
        # NumPy and the parser warn of types and of text in the file.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            header = _checked(raw.decode("utf-8" if version == (3, 0) else "latin-1"))
    except (ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError,
            MemoryError) as exc:
        raise MetadataError(f"{what}: cannot read the header {raw[:100]!r}: {exc!s:.200}") from exc
    if header.dtype.hasobject:
        raise UnsupportedError(f"{what} holds pickled objects, which are never loaded", feature="pickled objects")
    if not header.dtype.itemsize:
        raise UnsupportedError(f"{what} holds items of no bytes, {header.dtype}", feature="items of no bytes")
    return header


def _checked(text):
    """Return the `_Header` of a text; raises any error where it is wrong."""
    try:
        found = ast.literal_eval(text)
    except SyntaxError:
        found = ast.literal_eval(_LONG.sub("", text))
    if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("expected a dict of descr, fortran_order and shape")
    shape, is_fortran = found["shape"], found["fortran_order"]
    if not isinstance(shape, tuple) or not all([type(n) is int and n >= 0 for n in shape]):
        raise ValueError(f"expected a tuple of lengths as its shape, found {shape!r:.60}")
    if type(is_fortran) is not bool:
        raise ValueError(f"expected True or False as fortran_order, found {is_fortran!r:.60}")
    dtype = np.lib.format.descr_to_dtype(found["descr"])
    if dtype.subdtype is not None:
        raise ValueError(f"expected a type of elements, found {dtype}")
    # Raises where NumPy has no array of the shape.
    np.broadcast_to(np.zeros((), dtype), shape)
    return _Header(shape, dtype, "F" if is_fortran and len(shape) > 1 else "C")


class NumpyTarget(Target):
    """A new file ``.npy`` to be written to; see `zcore.tools.copy.transfer.StoredTarget`."""

    def __init__(self, path: str, shape: tuple[int, ...], dtype: np.dtype[Any], order: Order) -> None:
        self._path = path
        self._order = order
        self.shape = shape
        self.dtype = dtype
        self.object_shape: tuple[int, ...] = (1,) * len(shape)
        if self.nbytes:
            self._offset = np.lib.format.open_memmap(path, "w+", dtype, shape, fortran_order=order == "F").offset
        else:
            np.save(path, np.zeros(shape, dtype), allow_pickle=False)

    def write(self, starts: tuple[int, ...], values: npt.NDArray[Any]) -> None:
        if not values.nbytes:
            return
        shape, itemsize = self.shape, self.dtype.itemsize
        strides = strides_of(shape, itemsize, self._order)
        if self._order == "F":
            shape, strides, starts, values = shape[::-1], strides[::-1], starts[::-1], values.T
        # The outer dimensions of the box: inside them it is one run of bytes.
        n_outer = max(0, len(shape) - 1)
        while n_outer > 0 and values.shape[n_outer] == shape[n_outer]:
            n_outer -= 1
        while n_outer < len(shape) - 1 and math.prod(values.shape[n_outer:]) * itemsize > _PIECE_NBYTES:
            n_outer += 1
        first = self._offset + sum(map(operator.mul, starts, strides))
        fd = open_descriptor(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for index in np.ndindex(values.shape[:n_outer]):
                # In runs of a megabyte, since elements in the other order are copied here.
                # Without the dots one element would be a scalar, which has the byte order of the machine.
                run = np.ascontiguousarray(values[(*index, ...)]).reshape(-1).view(np.uint8)
                write_at(fd, run, first + sum(map(operator.mul, index, strides)))
        finally:
            os.close(fd)


def dtype_of(source: SourceArray, wanted: CopyRequest) -> np.dtype[Any]:
    """Return the type of the elements of a new array."""
    return source.dtype if wanted.dtype is None else np.dtype(wanted.dtype)


class NpySink(Sink):
    """A file ``.npy``, which holds one array; see `zcore.tools.copy.destinations`."""

    takes: tuple[str, ...] = ("dtype", "order")

    def __init__(self, path: str, name: str, losses: Losses) -> None:
        if name:
            raise ValueError(f"a .npy file holds one array, which has no path; {name!r} was asked for")
        self._file = path
        self._losses = losses

    def group(self, name: str, source: SourceGroup) -> None:
        raise UnsupportedError("a .npy file holds one array, and no group", feature="groups in .npy files")

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> NumpyTarget:
        """Return the target of the elements of a new array."""
        if source.attributes:
            self._losses.note(f"attributes ({', '.join(source.attributes)})", name)
        if source.dimension_names is not None:
            self._losses.note(f"names of dimensions ({', '.join(map(str, source.dimension_names))})", name)
        dtype = dtype_of(source, wanted)
        if has_varying_items(dtype):
            raise UnsupportedError(f"{name or 'the array'}: items of varying length ({dtype}) are pickles in files of "
                                   "NumPy, and none in ASDF; pickles are never written. For texts, copy this array "
                                   "alone with dtype='U20', of as many characters as the longest one has, or copy to "
                                   "Zarr or HDF5", feature="items of varying length in files of NumPy and ASDF")
        return NumpyTarget(self._file, source.shape, dtype, wanted.order or source.order)


class NpzSink(NpySink):
    """A file ``.npz``: each member is written to a file ``.npy`` beside it first, and then moved into it."""

    def __init__(self, path: str, name: str, losses: Losses) -> None:
        super().__init__(os.path.join(os.path.dirname(path), f"{TEMPORARY}member.npy"), "", losses)
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self._name = name

    def group(self, name: str, source: SourceGroup) -> None:
        """Note the attributes of a group, which is nothing but a part of names."""
        if source.attributes:
            self._losses.note(f"attributes ({', '.join(source.attributes)})", name)

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> NumpyTarget:
        _check_new_name(self._name_of(name))
        return super().array(name, source, wanted)

    def _name_of(self, name):
        return "/".join(part for part in (self._name, name) if part) or "arr_0"

    def end(self, name: str) -> None:
        self._archive.write(self._file, self._name_of(name) + _SUFFIX)
        os.unlink(self._file)

    def close(self) -> None:
        self._archive.close()


def _check_new_name(name):
    """Raise InvalidKeyError unless a member may have a name."""
    check_name(name)
    if name.endswith(_SUFFIX):
        raise InvalidKeyError(f"{name!r:.200} is not a name in an .npz file: `numpy.load` takes {_SUFFIX!r} "
                              "for an ending", key=name)
