"""``core/ndarray``: where in a block the elements of an array lie, and how they are read.

A node gives a block, an element type, a shape, and optionally an offset and strides. None of them is trusted: every
byte that an index can reach is proven to lie in the block before there is a view of it.
"""
from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.datatypes import dtype_of, is_integer
from zcore.asdf.tree.inline import array_of
from zcore.asdf.tree.tagged import shown
from zcore.buffers import MAX_NDIM, bools_of, make_true_one, may_overlap, strides_of
from zcore.errors import AsdfFormatError, UnsupportedError
from zcore.text.characters import fault_of_text

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt


MAX_NBYTES = 2**63 - 1


class NDArrayNode:
    """An array of a tree; its elements are read when they are asked for.

    NumPy takes it where it takes an array. Its members are checked when it is used: one damaged array leaves the others
    readable.

    Attributes
    ----------
    tag : str
    members : dict
        The node as the tree has it; a list of elements is its member ``data``.
    origin : Origin
        Of the tree that it is in.
    """

    __slots__ = ("tag", "members", "is_list", "origin", "_form", "__weakref__")

    def __init__(self, tag: str, members: Any, origin: Any, is_list: bool = False) -> None:
        self.tag: str = tag
        self.members: Any = {"data": members} if is_list else members
        self.is_list: bool = is_list  # the elements are in the place of the mapping
        self.origin: Any = origin
        self._form = None

    # description

    @property
    def source(self) -> int | str | None:
        """The number of its block, the URI of the file that has it, or None where the elements are in the tree."""
        members = self.members
        if ("source" in members) == ("data" in members):
            raise AsdfFormatError("ndarray: expected one of source and data, found "
                                  f"{'both' if 'data' in members else 'neither'}", member="source")
        source = members.get("source")
        if "source" in members and not is_integer(source) and not isinstance(source, str):
            raise AsdfFormatError(f"ndarray: expected a block number or a URI, found {shown(source)}", member="source")
        return source

    @property
    def block(self) -> Any:
        """The block that holds its elements; None where they are in the tree.

        Raises : AsdfFormatError, if there is no such block.
        """
        source = self.source
        return None if source is None else self.origin.block_of(source)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of its elements."""
        return self._layout[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths; the first one of a streamed array follows from the size of its block now."""
        return self._layout[1]

    @property
    def offset(self) -> int | None:
        """Where in the decoded block the element (0, ..., 0) lies; None where the elements are in the tree."""
        return self._layout[2]

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Bytes from an element to the next one in each dimension; None where the elements are in the tree."""
        return self._layout[3]

    @property
    def is_streamed(self) -> bool:
        """Whether it has as many rows as its block holds."""
        shape = self.members.get("shape")
        return isinstance(shape, list) and shape[:1] == ["*"]

    @property
    def ndim(self) -> int:
        """Number of its dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of its elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of its elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def mask(self) -> complex | NDArrayNode | None:
        """Which elements are missing: a value that they have, an array, or None.

        Raises : AsdfFormatError, if it is none of these.
        """
        mask = self.members.get("mask")
        if hasattr(mask, "resolve"):
            mask = mask.resolve()
        if mask is None or isinstance(mask, int | float | complex) and not isinstance(mask, bool):
            return mask
        if isinstance(mask, NDArrayNode):
            if mask is self or mask.members.get("mask") is not None:
                raise AsdfFormatError("ndarray: a mask that has a mask", member="mask")
            return mask
        raise AsdfFormatError(f"ndarray: expected a mask, a number or an array, found {type(mask).__name__}",
                              member="mask")

    def __repr__(self) -> str:
        try:
            form = f"shape={self.shape}, dtype={self.dtype}"
        except (AsdfFormatError, UnsupportedError) as error:
            return f"<NDArrayNode {error}>"
        source = self.source
        return f"<NDArrayNode {form}{'' if source is None else f', source={source!r}'}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimensions has no len()")
        return self.shape[0]

    # reading

    def read(self) -> npt.NDArray[Any]:
        """Return its elements: a new array or, where several arrays lie in one block, a view of the block.

        Arrays with a mask are masked arrays. Elements that lie over one another are read-only.

        Raises
        ------
        AsdfFormatError
            A member is wrong, or an element lies outside of the block.
        """
        array = self._inline() if self.source is None else self._view()
        mask = self.mask
        if mask is None:
            return array
        if isinstance(mask, NDArrayNode):
            missing = np.ma.getdata(mask.read())
            if missing.dtype.kind not in "biufc":
                raise AsdfFormatError(f"ndarray: a mask of type {missing.dtype}", member="mask")
            missing = missing != 0
            if missing.shape != array.shape:
                try:
                    missing = np.broadcast_to(missing, array.shape)
                except ValueError as exc:
                    raise AsdfFormatError(f"ndarray: a mask of shape {list(missing.shape)} for an array of shape "
                                          f"{list(array.shape)}", member="mask") from exc
        elif array.dtype.kind not in "biufc":
            raise AsdfFormatError(f"ndarray: the mask {mask!r} for elements of type {array.dtype}", member="mask")
        elif mask != mask:
            missing = array != array
        else:
            try:
                missing = array == mask
            except OverflowError as exc:
                raise AsdfFormatError(f"ndarray: the mask {mask!r:.100} for elements of type {array.dtype}",
                                      member="mask") from exc
        return np.ma.array(array, mask=missing | np.ma.getmaskarray(array))

    def elements(self) -> npt.NDArray[Any]:
        """Return its elements without regard to a mask; see `read`."""
        return np.ma.getdata(self._inline()) if self.source is None else self._view()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = np.asarray(self.read())
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"elements of type {array.dtype} are not {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def reach(self) -> tuple[int, int]:
        """Return the first byte of the decoded block that an index reaches, and the one behind the last.

        Raises : AsdfFormatError, if these do not lie in the block.
        """
        dtype, shape, offset, strides = self._layout
        start, stop = _reach(dtype.itemsize, shape, offset, strides)
        n_bytes = self.block.data_size
        if start < 0 or stop > n_bytes:
            raise AsdfFormatError(f"ndarray: its elements lie at bytes {start} to {stop} of a block of {n_bytes}",
                                  member="strides" if "strides" in self.members else "shape", block=self.source)
        return start, stop

    def _view(self):
        dtype, shape, offset, strides = self._layout
        start, stop = self.reach()
        if start == stop:
            # Not `np.empty`, which takes text of no characters for text of one.
            return np.ndarray(shape, dtype, bytearray(1))
        data, first = self.origin.bytes_of(self.source, start, stop)
        array = np.ndarray(shape, dtype, data, offset - first, strides)
        if fault := fault_of_text(array):
            raise AsdfFormatError(f"an array of {shown(self.source)}: {fault}")
        if may_overlap(dtype.itemsize, shape, strides):
            array.flags.writeable = False
        if any([(raw > 1).any() for raw in bools_of(array)]):
            array = array.copy()
            make_true_one(array)
        return array

    def _inline(self):
        dtype, shape = self._given()
        return array_of(self.members["data"], dtype, shape, self.origin.n_text)

    # members of the node

    @property
    def _layout(self):
        form = self._form
        if form is None:
            if self.source is None:
                array = self._inline()
                form = array.dtype, array.shape, None, None
            else:
                form = self._parsed()
            if not self.is_streamed:
                self._form = form
        return form

    def _given(self):
        """Return type and shape of inline data as the tree has them, None where it leaves them open."""
        datatype, shape = self.members.get("datatype"), self.members.get("shape")
        return (None if datatype is None else dtype_of(datatype, self.members.get("byteorder", "little")),
                None if shape is None else _shape_of(shape))

    def _parsed(self):
        members = self.members
        for name in ("shape", "datatype", "byteorder"):
            if name not in members and not (name == "byteorder" and _has_one_byte(members["datatype"])):
                raise AsdfFormatError(f"ndarray: {name} is missing", member=name)
        dtype = dtype_of(members["datatype"], members.get("byteorder", "little"))
        shape = _shape_of(members["shape"])
        offset, strides = members.get("offset", 0), members.get("strides")
        if not is_integer(offset) or offset < 0:
            raise AsdfFormatError(f"ndarray: expected an offset of 0 or more, found {shown(offset)}", member="offset")
        if strides is not None:
            if not isinstance(strides, list) or len(strides) != len(shape) or not all(map(is_integer, strides)):
                raise AsdfFormatError(f"ndarray: expected {len(shape)} strides, found {shown(strides)}",
                                      member="strides")
            if 0 in strides:
                raise AsdfFormatError("ndarray: a stride of 0", member="strides")
        if shape[:1] == ("*",):
            shape = self._counted(shape, dtype.itemsize, offset, strides)
        if math.prod([n for n in shape if n]) * dtype.itemsize > MAX_NBYTES:
            raise AsdfFormatError(f"ndarray: a shape of more than 2**63 bytes, {shown(shape)}", member="shape")
        if strides is None:
            strides = strides_of(shape, dtype.itemsize)
        if 0 not in shape and (offset > MAX_NBYTES or any([abs(n) > sys.maxsize for n in strides])):
            # Of a single element, too, from which no stride leads away: NumPy has to take it.
            raise AsdfFormatError(f"ndarray: an offset of more than 63 bits, or a stride of more than "
                                  f"{sys.maxsize.bit_length()} bits", member="strides")
        return dtype, shape, offset, tuple(strides)

    def _counted(self, shape, itemsize, offset, strides):
        """Return the shape of an array that grows: as many rows as fit, a part of one is left out."""
        n_bytes = self.block.data_size - offset
        row = math.prod(shape[1:]) * itemsize if strides is None else strides[0]
        if row <= 0:
            return 0, *shape[1:]
        if strides is None:
            return max(0, n_bytes // row), *shape[1:]
        # The last row ends where its last element does, which may be before the next one would begin.
        extent = _reach(itemsize, shape[1:], 0, strides[1:])[1]
        return (0 if n_bytes < extent else (n_bytes - extent) // row + 1), *shape[1:]


def _shape_of(shape):
    if not isinstance(shape, list) or not all([is_integer(n) and 0 <= n <= MAX_NBYTES or n == "*" and i == 0
                                               for i, n in enumerate(shape)]):
        raise AsdfFormatError(f"ndarray: expected a shape, found {shown(shape)}", member="shape")
    if len(shape) > MAX_NDIM:
        raise UnsupportedError(f"an array of {len(shape)} dimensions, NumPy has at most {MAX_NDIM}",
                               feature=f"more than {MAX_NDIM} dimensions")
    return tuple(shape)


def _has_one_byte(datatype):
    return datatype in ("int8", "uint8", "bool8") or isinstance(datatype, list) and datatype[:1] == ["ascii"]


def _reach(itemsize, shape, offset, strides):
    if 0 in shape or not itemsize:
        return 0, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return (offset + sum([step for step in steps if step < 0]),
            offset + sum([step for step in steps if step > 0]) + itemsize)
