"""A list of sources as one: arrays of the same name are stacked, or joined along a dimension that they have.

The first source says what the nodes are. All others must agree with it, and the error names the source that does not.
Few sources are open at a time, however many there are.
"""
from __future__ import annotations

import hashlib
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import StoreError, warn
from zcore.nodes.node import Node
from zcore.tools.copy.sources import Source, SourceArray, open_source
from zcore.tools.rechunk import SLAB_NBYTES, slab_of, slabs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.tools.copy.sources import SourceGroup
    from zcore.typing import Selection

MAX_OPEN = 16
MAX_SHOWN = 10     # names of attributes in a message
# Attributes that say what the elements mean.
MEANINGS = ("units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value")


class StackedSource(Source):
    """Sources that become one; see `zcore.tools.copy.sources`.

    Parameters
    ----------
    sources : sequence
        As `open_source` takes them.
    path : str or list of str
        Of the nodes in them.
    selection, threads
        Of each of them, see `zcore.copy`.
    along : str or None
        The name of the dimension along which arrays are joined. Arrays without it must be equal in all sources, and
        there is one of them. By default arrays get a new first dimension.
    """

    nodes: list[tuple[str, SourceGroup | SourceArray]]
    lost: Sequence[tuple[str, str]]
    left_out: Sequence[tuple[str, str]]
    leaves_out: bool

    def __init__(self, sources: Sequence[Any], path: str | list[str], selection: Selection, threads: int | None,
                 along: str | None) -> None:
        if not sources:
            raise ValueError("expected at least one source in the list, found none")
        paths = path if isinstance(path, (list, tuple)) else [path] * len(sources)
        if len(paths) != len(sources):
            raise ValueError(f"expected a path for each of {len(sources)} sources, found {len(paths)}")
        self._sources, self._how, self._along = list(zip(sources, paths, strict=True)), (selection, threads), along
        self._open = {}
        self._identities = []
        lengths, digests, differing, first = {}, {}, set(), None
        try:
            for i in range(len(sources)):
                opened = self._source(i)
                nodes = dict(opened.nodes)
                if first is None:
                    first = nodes
                    self.lost, self.left_out, self.leaves_out = opened.lost, opened.left_out, opened.leaves_out
                    if along is not None and all([self._axis(*pair) is None for pair in opened.nodes]):
                        raise ValueError(f"{self._name(0)} has no array with a dimension {along!r}; without along=, "
                                         "sources are stacked")
                if strange := sorted(nodes.keys() ^ first.keys()):
                    raise ValueError(f"{self._name(i)} and {self._name(0)} have not the same members: one of them "
                                     f"lacks {strange[0]!r}")
                for name, node in nodes.items():
                    axis = self._check(i, name, node, first[name])
                    differing.update(f"{label} of {name}" if name else label
                                     for label in {*node.attributes, *first[name].attributes}
                                     if repr(node.attributes.get(label)) != repr(first[name].attributes.get(label)))
                    if axis is not None:
                        lengths.setdefault(name, []).append(1 if along is None else node.shape[axis])
                    elif isinstance(node, SourceArray) and digests.setdefault(name, found := _digest(node)) != found:
                        raise ValueError(f"{self._name(i)}: the elements of {name!r} differ from those of "
                                         f"{self._name(0)}, and there can be one array of them only")
        except BaseException:
            self.close()
            raise
        if differing:
            shown = sorted(differing)
            more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
            warn(f"attributes that are not the same in all sources are those of {self._name(0)}: "
                 f"{', '.join(shown[:MAX_SHOWN])}{more}")
        self.nodes = [(name, _Stacked(self, name, node, self._axis(name, node), lengths.get(name))
                       if isinstance(node, SourceArray) else node) for name, node in first.items()]
        self.identity: str = hashlib.sha256(repr((self._identities, along)).encode()).hexdigest()

    def _axis(self, name, node):
        """Return the dimension along which an array is joined; None if there is one for all sources."""
        names = list(getattr(node, "dimension_names", None) or ())
        if not isinstance(node, SourceArray):
            return None
        if self._along is None:
            return None if name and names == [name.rpartition("/")[2]] else 0     # a coordinate
        return names.index(self._along) if self._along in names else None

    def _check(self, i, name, node, first):
        """Check that a node is like that of the first source, and return the dimension along which it is joined."""
        axis = self._axis(name, node)
        for what, found, expected in zip(("kind", "type", "names of dimensions", "shape", *MEANINGS),
                                         *(self._facts(one, axis) for one in (node, first)), strict=True):
            if repr(found) != repr(expected):
                raise ValueError(f"{self._name(i)}: {name or 'the array'} has the {what} {found}, expected {expected} "
                                 f"as in {self._name(0)}")
        return axis

    def _facts(self, node, axis):
        if not isinstance(node, SourceArray):
            return "group", *[None] * (3 + len(MEANINGS))
        shape = [n for d, n in enumerate(node.shape) if self._along is None or d != axis]
        return ("array", node.dtype.str, node.dimension_names, tuple(shape),
                *(node.attributes.get(label) for label in MEANINGS))

    def _name(self, i):
        source, path = self._sources[i]
        described = source.store.describe(source.path) if isinstance(source, Node) else str(source)
        return f"{described}/{path}" if path else described

    def _source(self, i):
        """Return a source that is open.

        Raises : StoreError, if it is another one than before.
        """
        opened = self._open.pop(i, None)
        if opened is None:
            if len(self._open) >= MAX_OPEN:
                self._open.pop(next(iter(self._open))).close()
            opened = open_source(*self._sources[i], *self._how)
            if i == len(self._identities):
                self._identities.append(opened.identity)
            elif opened.identity != self._identities[i]:
                opened.close()
                raise StoreError(f"{self._name(i)} was changed while it was copied; copy again")
        self._open[i] = opened
        return opened

    def has_changed_since(self, moment: int) -> bool:
        return any(self._source(i).has_changed_since(moment) for i in range(len(self._sources)))

    def node(self, i: int, name: str) -> SourceArray:
        """Return an array of a source."""
        return next(node for key, node in self._source(i).nodes if key == name)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


class _Stacked(SourceArray):
    """The arrays of one name; see `SourceArray`. Without `lengths` it is that of the first source."""

    def __init__(self, source, name, first, axis, lengths):
        is_new = axis is not None and source._along is None
        shape = list(first.shape)
        if is_new:
            shape.insert(0, len(lengths))
        elif axis is not None:
            shape[axis] = sum(lengths)
        super().__init__(tuple(shape), first.dtype, first.attributes)
        self._source, self._name, self._is_new = source, name, is_new
        # The dimension, and where each source ends along it; None for the array of the first source.
        self.joined: tuple[int, list[int]] | None = None if axis is None else (axis, list(accumulate(lengths)))
        for label in ("fill_value", "missing_value", "fill_is_needed", "has_enum", "zarr_format", "order", "codecs",
                      "inner_codecs"):
            setattr(self, label, getattr(first, label))
        for label in ("chunk_shape", "chunks_of_objects", "shard_shape"):
            found = getattr(first, label)
            if isinstance(found, list) and axis is not None and not is_new:
                found = "auto"      # lists of lengths, which would not add up
            setattr(self, label, type(found)((1, *found)) if is_new and isinstance(found, (tuple, list)) else found)
        names = first.dimension_names
        self.dimension_names = (None, *names) if is_new and names is not None else names
        self._object_shape = (1, *first.object_shape) if is_new else first.object_shape

    @property
    def object_shape(self):
        return self._object_shape

    def read(self, starts, out):
        if self.joined is None:
            self._source.node(0, self._name).read(starts, out)
            return
        (axis, ends), done = self.joined, 0
        i = bisect_right(ends, starts[axis])
        while done < out.shape[axis]:
            start = starts[axis] + done
            n = min(ends[i] - start, out.shape[axis] - done)
            part = out[(slice(None),) * axis + (slice(done, done + n),)]
            values = part if part.flags.c_contiguous else np.empty(part.shape, part.dtype)
            if self._is_new:
                self._source.node(i, self._name).read(starts[1:], values.reshape(part.shape[1:]))
            else:
                begin = start - (ends[i - 1] if i else 0)
                self._source.node(i, self._name).read((*starts[:axis], begin, *starts[axis + 1:]), values)
            if values is not part:
                part[...] = values
            done += n
            i += 1


def _digest(array: SourceArray) -> bytes:
    """Return a checksum of all elements."""
    found = hashlib.sha256()
    slab = slab_of(array.shape, (1,) * len(array.shape), max(1, array.dtype.itemsize), SLAB_NBYTES)
    for part in slabs_of(array.shape, slab):
        values: npt.NDArray[Any] = np.empty([one.stop - one.start for one in part], array.dtype)
        array.read(tuple([one.start for one in part]), values)
        found.update(repr(values.tolist()).encode() if array.dtype.kind in "OT" else values.tobytes())
    return found.digest()
