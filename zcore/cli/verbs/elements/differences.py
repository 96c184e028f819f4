"""Where two nodes differ, found slab by slab, so that arrays of any size fit into memory."""
from __future__ import annotations

import json
import math
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.facts import node_kind
from zcore.errors import ZcoreError
from zcore.model.metadata import NAMES_ATTRIBUTE
from zcore.nodes.info import type_name
from zcore.tools.copy.sources import are_names
from zcore.tools.copy.translate import MISSING_ATTRIBUTE, missing_number
from zcore.tools.rechunk import slab_at, slab_of, slabs_of
from zcore.tools.stored import Stored, slabs_with_more

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SLAB_NBYTES = 2**24            # of each array; a comparison needs some eight times as much
NUMBERS = "biufc"


def differences(first: zcore.Array | zcore.Group, second: zcore.Array | zcore.Group, rtol: float = 0.0,
                atol: float = 0.0, *, with_attributes: bool = True,
                with_types: bool = True) -> Iterator[dict[str, Any]]:
    """Iterate over the differences of two nodes and of their members.

    Each is a dict: the ``path``, relative to the nodes; ``what`` differs, ``"member"``, ``"kind"``, ``"shape"``,
    ``"dtype"``, ``"dimension_names"``, ``"attribute"`` or ``"values"``; ``first`` and ``second``; the ``text`` for
    people. For values also ``count``, the index ``at`` of the first difference, and the ``largest`` difference.
    Without `with_types`, dimension names are not compared, and types only if values of them cannot be.

    Raises : ZcoreError, if a member cannot be opened or read.
    """
    yield from _of_nodes("", first, second, rtol, atol, with_attributes, with_types)
    if not (isinstance(first, zcore.Group) and isinstance(second, zcore.Group)):
        return
    firsts, seconds = dict(first.walk()), dict(second.walk())
    for path in sorted({*firsts, *seconds}):
        one, other = firsts.get(path), seconds.get(path)
        if one is None or other is None:
            node, side = (seconds[path], "second") if one is None else (firsts[path], "first")
            kind = node_kind(node)
            yield {"path": path, "what": "member", side: kind, "text": f"{kind} of the {side} alone"}
            continue
        for node in (one, other):
            if isinstance(node, ZcoreError):
                raise node
        yield from _of_nodes(path, one, other, rtol, atol, with_attributes, with_types)


def _of_nodes(path, first, second, rtol, atol, with_attributes, with_types):
    def difference(what, one, other, text=None, **more):
        return {"path": path, "what": what, "first": one, "second": other,
                "text": text or f"{what.replace('_', ' ')} {one} and {other}", **more}

    if type(first) is not type(second):
        yield difference("kind", node_kind(first), node_kind(second), f"{node_kind(first)} and {node_kind(second)}")
        return
    if isinstance(first, zcore.Array):
        if first.shape != second.shape:
            yield difference("shape", first.shape, second.shape)
        types = [_of_this_machine(array.dtype) for array in (first, second)]
        if types[0] != types[1] and (with_types or not _are_comparable(*types)):
            yield difference("dtype", *map(type_name, types))
    (one, names), (other, other_names) = _attributes_of(first), _attributes_of(second)
    if with_types and names != other_names:
        yield difference("dimension_names", names, other_names)
    if with_attributes:
        yield from _of_attributes(difference, one, other)
    if isinstance(first, zcore.Array) and first.shape == second.shape and _are_comparable(*types):
        found = _of_values(first, second, rtol, atol)
        if found is not None:
            yield difference("values", found["first"], found["second"], _text_of(found, first.size), **{
                name: found[name] for name in ("count", "at", "largest")})


def _attributes_of(node):
    """Return the attributes of a node, and the names of its dimensions, which are an attribute in Zarr v2."""
    attributes, names = node.attrs.asdict(), getattr(node, "dimension_names", None)
    if names is None and isinstance(node, zcore.Array) and are_names(attributes.get(NAMES_ATTRIBUTE), node.ndim):
        names = tuple(attributes.pop(NAMES_ATTRIBUTE))
    if MISSING_ATTRIBUTE in attributes and isinstance(node, zcore.Array):
        attributes[MISSING_ATTRIBUTE] = missing_number(attributes[MISSING_ATTRIBUTE], node.dtype)
    return attributes, names


def _of_attributes(difference, first, second):
    for name in sorted({*first, *second}):
        one, other = (None if name not in side else json.dumps(side[name], sort_keys=True, ensure_ascii=False)
                      for side in (first, second))
        if one != other:
            texts = ["absent" if side is None else side if len(side) < 60 else side[:59] + "…" for side in (one, other)]
            yield difference("attribute", first.get(name), second.get(name),
                             f"attribute {name}: {texts[0]} and {texts[1]}", name=name)


def _of_this_machine(dtype):
    """Return a type in the byte order of this machine, which is not compared; text has none."""
    return dtype if dtype.kind == "T" else dtype.newbyteorder("=")


def _are_comparable(one, other):
    return one == other or (one.kind in NUMBERS and other.kind in NUMBERS)


def _of_values(first, second, rtol, atol):
    """Return how many values differ, the index of the first of them, and the largest difference; None without any."""
    shape, found = first.shape, _Differences(rtol, atol)
    # Slabs are whole chunks of the array whose objects hold more elements: those are decoded once.
    larger = max((first, second), key=lambda array: np.prod(array.metadata.chunk_shape, dtype=float))
    slab = slab_of(shape, larger.metadata.chunk_shape, larger.dtype.itemsize, SLAB_NBYTES)
    stored = [Stored(array._binding) for array in (first, second)]
    numbers = slabs_with_more(shape, slab, stored)
    n_seen = 0
    for selection in slabs_of(shape, slab, numbers):
        one, other = np.asarray(first[selection]), np.asarray(second[selection])
        found.compare(one, other, [part.start for part in selection])
        n_seen += one.size
    n_absent = math.prod(shape) - n_seen
    if n_absent:
        # Elements that neither array has stored are two fill values, compared once.
        first_absent = next(i for i, number in enumerate(chain(numbers, [None])) if number != i)
        found.compare(*[np.asarray(array.fill()) for array in stored], slab_at(shape, slab, first_absent)[0], n_absent)
    return found.result()


class _Differences:
    """The differences of the values compared so far."""

    def __init__(self, rtol, atol):
        self._tolerances = rtol, atol
        self._count, self._at, self._values, self._largest = 0, None, (None, None), None

    def compare(self, one, other, starts, times=None):
        """Compare two boxes of values, the elements from `starts` on, or two values that occur so many times."""
        differ = _differ(one, other, *self._tolerances)
        n = int(np.count_nonzero(differ))
        if not n:
            return
        inside = np.unravel_index(int(np.argmax(differ)), differ.shape)
        at = list(starts) if times else [int(i) + start for i, start in zip(inside, starts, strict=True)]
        if self._at is None or at < self._at:
            self._at, self._values = at, (one[inside], other[inside])
        self._count += times or n
        if one.dtype.kind in NUMBERS and other.dtype.kind in NUMBERS:
            self._largest = max(self._largest or 0.0, _largest(one[differ], other[differ]))

    def result(self):
        """Return the result of `_of_values`."""
        return None if self._at is None else {"count": self._count, "at": self._at, "first": self._values[0],
                                              "second": self._values[1], "largest": self._largest}


def _differ(one, other, rtol, atol):
    """Return where two arrays of one shape differ, an array of bool."""
    if one.dtype.names is not None:
        differ = np.zeros(one.shape, bool)
        for name in one.dtype.names:
            field = _differ(one[name], other[name], rtol, atol)
            # A field that is an array has dimensions of its own.
            differ |= field.reshape(*one.shape, -1).any(axis=-1)
        return differ
    is_number = one.dtype.kind in NUMBERS and other.dtype.kind in NUMBERS
    if not (rtol or atol) or not is_number:
        with np.errstate(invalid="ignore"):
            differ = np.asarray(one != other)
        if one.dtype.kind in "fcmM" and one.dtype.kind == other.dtype.kind:
            nothing = np.isnat if one.dtype.kind in "mM" else np.isnan
            differ &= ~(nothing(one) & nothing(other))
        elif one.dtype.kind == "V" and differ.any():
            # A type that NumPy does not have, such as bfloat16, has NaN, too.
            differ &= ~((one != one) & (other != other))
        return differ
    with np.errstate(invalid="ignore", over="ignore"):
        # Not `numpy.isclose`: it subtracts small integers modulo 256.
        one, other = _wide(one), _wide(other)
        near = (one == other) | (np.abs(one - other) <= atol + rtol * np.abs(other)) | ((one != one) & (other != other))
    return ~near


def _wide(values):
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


def _largest(one, other):
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(_wide(one) - _wide(other))
    return float(np.max(apart[apart == apart], initial=0.0))


def _text_of(found, size):
    most = f", by {found['largest']:g} at the most" if found["largest"] is not None else ""
    return (f"{found['count']} of {size} values differ{most}; the first at [{', '.join(map(str, found['at']))}]: "
            f"{found['first']} and {found['second']}")
