"""Values to the text of a tree, and arrays to blocks.

Arrays that share memory share a block; each of them is that block with an offset and strides. A value that
occurs more than once is written once, with an anchor. The loop has no recursion: a tree may be deep, and may hold
itself.
"""
from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.datatypes import datatype_of, packed
from zcore.asdf.tree.inline import lists_of
from zcore.asdf.tree.ndarray import NDArrayNode
from zcore.asdf.tree.scalars import SCALARS, complex_text, is_plain_text, written
from zcore.asdf.tree.sharing import pieces_of
from zcore.asdf.tree.tagged import MAX_DEPTH, STANDARD_VERSION, STSCI, TaggedMapping, TaggedScalar, TaggedSequence
from zcore.asdf.tree.yaml_library import emitter_of, import_yaml
from zcore.config import __version__
from zcore.errors import UnsupportedError
from zcore.text.characters import fault_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import numpy.typing as npt

ROOT = STSCI + "core/asdf-"


class Inline:
    """An array whose elements are written into the tree.

    Parameters
    ----------
    array : array_like
    """

    __slots__ = ("array",)

    def __init__(self, array: npt.ArrayLike) -> None:
        is_masked = isinstance(array, np.ma.MaskedArray)
        self.array: npt.NDArray[Any] = np.ma.asarray(array) if is_masked else np.asarray(array)


class Stream:
    """An array that rows are appended to, in the last block of a file: it has as many as that block holds.

    Parameters
    ----------
    shape : tuple of int
        Of a row.
    dtype : dtype_like
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Iterable[int], dtype: npt.DTypeLike) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)


def dump(tree: dict[str, Any], add_block: Callable[..., int | str] | None, *, standard: str = STANDARD_VERSION,
         embed: bool = False) -> bytes:
    """Return the text of a tree, from ``%YAML`` to the end of the document.

    Parameters
    ----------
    tree : dict
        Of dicts, lists, tuples, scalars, arrays, and values that `load` returns.
    add_block : callable
        Takes the memory of a block, an ndarray of uint8, or a block of another file, and returns the number that it
        gets, or the URI of the file that gets it. Called once for each; with ``streamed=True`` for a `Stream`.
    standard : str
        Version of the ASDF standard; it decides the versions of tags.
    embed : bool
        Arrays that lie in other files come into this one; else they stay there.

    Raises
    ------
    TypeError, ValueError
        The tree holds something that a file cannot; the message says where.
    UnsupportedError
        It holds an array of a type that ASDF does not have.

    Notes
    -----
    ASDF standard, "YAML subset"; core/ndarray. The member ``asdf_library`` of the root says that zcore wrote it;
    all others are kept.

    Examples
    --------
    >>> print(dump({"a": [1, 2], "b": "yes"}, None).decode().partition("asdf_library")[0].rstrip())
    %YAML 1.1
    %TAG ! tag:stsci.edu:asdf/
    --- !core/asdf-1.1.0
    """
    if not isinstance(tree, dict):
        raise TypeError(f"the root of a tree is a dict, found {type(tree).__name__}")
    version = tuple(map(int, standard.split(".")))
    yaml = import_yaml()
    writer = _Writer(yaml, add_block, version, embed)
    writer.survey(tree)
    events = [
        yaml.StreamStartEvent(encoding="utf-8"),
        yaml.DocumentStartEvent(explicit=True, version=(1, 1), tags={"!": STSCI}),
        *writer.events(tree),
        yaml.DocumentEndEvent(explicit=True),
        yaml.StreamEndEvent(),
    ]
    stream = io.BytesIO()
    yaml.emit(events, stream, Dumper=emitter_of(yaml), allow_unicode=True, width=120)
    return stream.getvalue()


class _Writer:
    """Makes the text of one tree."""

    def __init__(self, yaml, add_block, version, embed):
        self.yaml = yaml
        self.add_block = add_block
        self.embed = embed
        is_new = version >= (1, 6)
        self.root_tag = ROOT + ("1.1.0" if version >= (1, 2) else "1.0.0")
        self.array_tag = f"{STSCI}core/ndarray-{'1.1.0' if is_new else '1.0.0'}"
        self.counts = {}       # how often an object occurs, by its id
        self.forms = {}        # (the object, the dict or list that stands for it in the tree), by its id
        self.arrays = []       # (array or node, members to be filled in)
        self.anchors = {}

    # collecting

    def survey(self, tree):
        """Find all objects of a tree, and give its arrays blocks."""
        self.forms[id(tree)] = tree, self._root_of(tree)
        pending = [(tree, "")]
        while pending:
            value, where = pending.pop()
            if isinstance(value, SCALARS):
                continue
            key = id(value)
            if key in self.counts:
                self.counts[key] += 1
                continue
            if key not in self.forms:
                form = self._form_of(value, where)
                if form is None:
                    continue
                self.forms[key] = value, form
            self.counts[key] = 1
            form = self.forms[key][1]
            if isinstance(form, dict):
                for name in form:
                    if not isinstance(name, str | int):
                        raise TypeError(f"{where or '/'}: the keys of a tree are texts, integers or truth values, "
                                        f"found {name!r:.100}")
                pending += [(form[name], f"{where}/{name}") for name in reversed(form)]
            else:
                pending += [(form[i], f"{where}/{i}") for i in range(len(form) - 1, -1, -1)]
        self._place_arrays()

    def _root_of(self, tree):
        tag = getattr(tree, "tag", None)
        tag = tag if tag is not None and tag.startswith(ROOT) else self.root_tag
        library = TaggedMapping(STSCI + "core/software-1.0.0",
                                {"author": "The zcore developers", "name": "zcore", "version": __version__})
        rest = {name: value for name, value in tree.items() if name != "asdf_library"}
        return TaggedMapping(tag, {"asdf_library": library, **rest})

    def _form_of(self, value, where):
        """Return the dict or list that stands for an object, or None for a scalar."""
        if isinstance(value, dict | list | tuple):
            return value
        if isinstance(value, np.generic):
            if value.dtype.kind in "biufcSU" and value.dtype.char not in "gG":
                return None
            value = np.asarray(value)
        if isinstance(value, NDArrayNode):
            return self._form_of_node(value)
        if isinstance(value, Stream):
            datatype, byteorder = _datatype_of(value.dtype, where)
            members = {"source": -1, "datatype": datatype, "byteorder": byteorder, "shape": ["*", *value.shape]}
            if any(isinstance(other, Stream) for other, _ in self.arrays):
                raise ValueError(f"{where}: a file has one stream, the tree has another")
            self.arrays.append((value, members))
            return TaggedMapping(self.array_tag, members)
        if isinstance(value, Inline):
            array = value.array
            if array.ndim:
                datatype, _ = _datatype_of(array.dtype, where)
                return TaggedMapping(self.array_tag, {"data": lists_of(array), "datatype": _unordered(datatype),
                                                      "shape": list(array.shape)})
            value = array
        if isinstance(value, np.ndarray) or hasattr(value, "__array__") and hasattr(value, "dtype"):
            return self._form_of_array(value if isinstance(value, np.ndarray) else np.asarray(value), where)
        raise TypeError(f"{where}: a tree cannot hold an object of type {type(value).__name__}")

    def _form_of_array(self, value, where):
        array = np.ma.getdata(value).view(np.ndarray)
        datatype, byteorder = _datatype_of(array.dtype, where)
        if fault := fault_of_text(array):
            raise ValueError(f"{where}: {fault}")
        members = {"source": None, "datatype": datatype, "byteorder": byteorder, "shape": list(array.shape)}
        self.arrays.append((array, members))
        form = TaggedMapping(self.array_tag, members)
        if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask:
            if array.dtype.names is not None:
                raise UnsupportedError(f"{where}: ASDF has no masks of fields", feature="masks of fields")
            form["mask"] = value.mask
        self.arrays[-1] = array, form
        return form

    def _form_of_node(self, node):
        if node.is_list:
            return TaggedSequence(node.tag, node.members)
        form = TaggedMapping(node.tag, node.members)
        source = node.source
        if source is not None and (self.embed or not isinstance(source, str)):
            if node.is_streamed:
                # In a file that may have blocks behind it.
                form["shape"] = list(node.shape)
            self.arrays.append((node, form))
        return form

    def _place_arrays(self):
        given = [array for array, _ in self.arrays if isinstance(array, np.ndarray)]
        pieces = iter(pieces_of(given))
        numbers = {}
        stream = None
        for array, members in self.arrays:
            if isinstance(array, Stream):
                stream = array
                continue
            if isinstance(array, NDArrayNode):
                memory = array.block
            else:
                piece = next(pieces)
                memory = piece.memory
                if piece.offset:
                    members["offset"] = piece.offset
                if piece.strides is not None:
                    members["strides"] = strides = list(piece.strides)
                    self.forms[id(strides)], self.counts[id(strides)] = (strides, strides), 1
            if id(memory) not in numbers:
                # The memory is kept, so that no other has its id.
                numbers[id(memory)] = self.add_block(memory), memory
            members["source"] = numbers[id(memory)][0]
        if stream is not None:
            self.add_block(np.empty(0, np.uint8), streamed=True)

    # writing

    def events(self, tree):
        """Iterate over the events of the tree."""
        yaml = self.yaml
        pending, depth = [tree], 0
        while pending:
            value = pending.pop()
            if isinstance(value, yaml.Event):
                depth -= 1
                yield value
                continue
            found = None if isinstance(value, SCALARS) else self.forms.get(id(value))
            if found is None:
                yield self._scalar(value)
                continue
            form = found[1]
            anchor = None
            if self.counts[id(value)] > 1 and form:
                anchor = self.anchors.get(id(value))
                if anchor is not None:
                    yield yaml.AliasEvent(anchor)
                    continue
                self.anchors[id(value)] = anchor = f"id{len(self.anchors) + 1:03}"
            depth += 1
            if depth > MAX_DEPTH:
                # No reader takes it, and each level is indented more than the one above it.
                raise ValueError(f"the tree has more than {MAX_DEPTH} levels")
            tag = getattr(form, "tag", None)
            if isinstance(form, dict):
                yield yaml.MappingStartEvent(anchor, tag, tag is None, flow_style=False)
                pending.append(yaml.MappingEndEvent())
                for name in reversed(form):
                    pending += [form[name], name]
            else:
                yield yaml.SequenceStartEvent(anchor, tag, tag is None, flow_style=_is_short(form))
                pending.append(yaml.SequenceEndEvent())
                pending += reversed(form)

    def _scalar(self, value):
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, TaggedScalar):
            return self._event(str(value), value.tag)
        if isinstance(value, str):
            style = '"' if not value.isprintable() else None
            return self.yaml.ScalarEvent(None, None, (style is None and is_plain_text(value), True), value, style=style)
        if isinstance(value, complex):
            return self._event(complex_text(value), STSCI + "core/complex-1.0.0")
        text, tag = written(value)
        return self._event(text, tag) if tag is not None else self.yaml.ScalarEvent(None, None, (True, False), text)

    def _event(self, text, tag):
        return self.yaml.ScalarEvent(None, tag, (False, False), text)


def _datatype_of(dtype, where):
    try:
        return datatype_of(packed(dtype))
    except UnsupportedError as error:
        error.locate(where)
        raise


def _unordered(datatype):
    """Return a datatype without byte orders, which elements in the tree do not have."""
    if isinstance(datatype, list) and datatype and isinstance(datatype[0], dict):
        return [{name: _unordered(value) for name, value in field.items() if name != "byteorder"}
                for field in datatype]
    return datatype


def _is_short(items):
    """Whether a list is written on one line: it holds numbers, or the shape of a stream."""
    return all([isinstance(item, bool | int | float | type(None)) or type(item) is str and item == "*"
                for item in items])
