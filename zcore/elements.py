"""Selected elements, brought from an array or to it: what all ways of indexing end in."""
import math

import numpy as np

from zcore.assignment import assigned
from zcore.described import DescribedArray
from zcore.errors import OutOfMemoryError, ZcoreError
from zcore.fields import packed_type, part_of, split_fields, type_of
from zcore.info import type_name
from zcore.kernel.selection import Box, basic


class ElementArray(DescribedArray):
    """Reads and writes what is selected: a `Box` or a `Product`, of all fields, of one, or of several."""

    __slots__ = ()

    def _selected(self, selection):
        """Return (box or product, fields) of what stands in brackets; see `split_fields`."""
        box = basic(selection, self.shape)
        if box is not None:
            return box, None
        from zcore.indexing import indexed

        fields, selection = split_fields(selection, self.dtype)
        box = basic(selection, self.shape)
        return box if box is not None else indexed(selection, self.shape), fields

    # reading

    def _get(self, selected, fields=None, out=None, *, packed=False):
        """Return the selected elements, in `out` if that is given.

        Parameters
        ----------
        selected : Box or Product
        fields : str or list of str, optional
        out : buffer, optional
        packed : bool
            Of several fields make a type without gaps.
        """
        dtype = self.dtype
        if fields is not None:
            wanted = packed_type(fields, dtype) if packed and isinstance(fields, list) else type_of(fields, dtype)
        else:
            wanted = dtype
        if out is not None:
            place = _checked_out(out, selected.shape + wanted.shape, wanted.base)
            if fields is None or (isinstance(fields, str) and not wanted.shape):
                self._read(selected, place, None if fields is None else part_of(fields, dtype))
            else:
                place[...] = self._get(selected, fields, packed=packed)
            return out
        if isinstance(fields, list):
            everything = self._get(selected)
            if not packed:
                return everything[fields]
            result = allocated(selected.shape, wanted)
            for name in fields:
                result[name] = everything[name]
        elif wanted.shape:
            # NumPy makes no array whose items are arrays, but fields that are some.
            holder = allocated(selected.shape, np.dtype([(fields, wanted)]))
            self._read(selected, holder, part_of(fields, dtype))
            result = holder[fields]
        else:
            result = allocated(selected.shape, wanted)
            self._read(selected, result, None if fields is None else part_of(fields, dtype))
        return result

    def _read(self, selected, out, part=None):
        """Read into an ndarray of the selection's shape; of a part only that."""
        out = np.asarray(out)
        try:
            if type(selected) is Box:
                self._binding.read(selected, out if selected.expand is None else out[selected.expand], part)
            elif not selected.is_empty:
                elements, is_view = selected.worked(out)
                if is_view:
                    self._binding.read(selected, elements, part)
                else:
                    whole = allocated(out.shape, out.dtype)
                    self._binding.read(selected, selected.worked(whole)[0], part)
                    out[...] = whole
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise

    # writing

    def _set(self, selected, values, fields=None):
        """Write values, broadcast and cast by NumPy's rules, to the selected elements."""
        dtype, shape = self.dtype, selected.shape
        if fields is None:
            self._write(selected, assigned(values, dtype, shape, selected.way))
        elif isinstance(fields, list):
            values = assigned(values, type_of(fields, dtype), shape, selected.way)
            for name in fields:
                self._set(selected, values[name], name)
        else:
            part_type = type_of(fields, dtype)
            part = part_of(fields, dtype)
            way = selected.way
            if part_type.shape:
                # The field has more dimensions than an element, or a mask of all of them.
                way = {"element": "view", "mask": "points"}.get(way, way)
            values = assigned(values, part_type.base, shape + part_type.shape, way)
            if part_type.shape:
                holder = allocated(shape, np.dtype([(fields, part_type)]))
                holder[fields] = values
                values = holder
            self._write(selected, values, part)

    def _write(self, selected, values, part=None):
        """Write an ndarray of the selection's shape and type; of a part only that."""
        try:
            if type(selected) is Box:
                self._binding.write(selected, values if selected.expand is None else values[selected.expand], part)
            elif not selected.is_empty:
                self._binding.write(selected, selected.worked(values)[0], part)
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise


def allocated(shape, dtype):
    """Return an array for a result; its size may come from a document that nobody has to believe."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as exc:
        nbytes = math.prod(shape) * dtype.itemsize
        raise OutOfMemoryError(f"no memory for the {nbytes} bytes of a result of shape {shape} and type "
                               f"{type_name(dtype)}", nbytes=nbytes) from exc


def _checked_out(out, shape, dtype):
    """Return the caller's memory as an ndarray, if it is one for a result of that shape and type."""
    if not isinstance(out, np.ndarray):
        try:
            out = np.asarray(memoryview(out))
        except TypeError:
            raise TypeError(f"out is {type(out).__name__}, expected numpy.ndarray or another buffer") from None
    if out.dtype != dtype:
        raise TypeError(f"out has type {out.dtype}, the array {dtype}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the selection {shape}")
    if not out.flags.writeable:
        raise ValueError("out is not writable")
    return out
