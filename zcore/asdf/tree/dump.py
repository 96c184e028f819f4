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
from zcore.asdf.tree.origin import Reference
from zcore.asdf.tree.scalars import SCALARS, complex_text, import_yaml, is_plain_text, written
from zcore.asdf.tree.sharing import pieces_of
from zcore.asdf.tree.tagged import (
    MAX_DEPTH,
    STANDARD_VERSION,
    STSCI,
    IntegerNode,
    TaggedMapping,
    TaggedScalar,
    TaggedSequence,
)
from zcore.config import __version__
from zcore.errors import UnsupportedError
from zcore.text.arguments import as_bool
from zcore.text.characters import fault_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import numpy.typing as npt

ROOT = STSCI + "core/asdf-"
_ARRAY = STSCI + "core/ndarray-1.1.0"


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


def dump(tree: dict[str, Any], add_block: Callable[..., int | str] | None, *, standard: str | None = None,
         embed: bool = False, directory: str | None = None) -> bytes:
    """Return the text of a tree, from ``%YAML`` to the end of the document.

    Parameters
    ----------
    tree : dict
        Of dicts, lists, tuples, scalars, arrays, and values that `load` returns.
    add_block : callable
        Takes the memory of a block, an ndarray of uint8, or a block of another file, and returns the number that it
        gets, or the URI of the file that gets it. Called once for each; with ``streamed=True`` for a `Stream` and for a
        streamed block, which stays one if the number is -1.
    standard : str, optional
        Version of the ASDF standard; it decides the versions of tags. By default that of the file that the tree, or a
        part of it, comes from; else the newest one.
    embed : bool
        Arrays that lie in other files come into this one; else they stay there.
    directory : str, optional
        Of the file that is written: relative URIs of the tree have to mean the same there.

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
    return dump_with_standard(tree, add_block, standard, embed, directory)[0]


def dump_with_standard(tree: dict[str, Any], add_block: Callable[..., int | str] | None, standard: str | None,
                       embed: bool, directory: str | None) -> tuple[bytes, str]:
    """Return the text of a tree, see `dump`, and the version of the standard that its tags are of."""
    if not isinstance(tree, dict):
        raise TypeError(f"the root of a tree is a dict, found {type(tree).__name__}")
    yaml = import_yaml()
    writer = _Writer(yaml, add_block, embed, directory)
    writer.survey(tree)
    standard = writer.set_tags(standard or getattr(tree, "standard", None))
    events = [
        yaml.StreamStartEvent(encoding="utf-8"),
        yaml.DocumentStartEvent(explicit=True, version=(1, 1), tags={"!": STSCI}),
        *writer.events(tree),
        yaml.DocumentEndEvent(explicit=True),
        yaml.StreamEndEvent(),
    ]
    stream = io.BytesIO()
    # That of libyaml, where PyYAML was built with it.
    yaml.emit(events, stream, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=True, width=120)
    return stream.getvalue(), standard


def _version_of(standard):
    return tuple(map(int, standard.split(".")))


class _Writer:
    """Makes the text of one tree."""

    def __init__(self, yaml, add_block, embed, directory):
        self.yaml = yaml
        self.add_block = add_block
        self.embed = as_bool(embed, "embed")
        self.directory = directory
        self.root = None       # what stands for the root in the tree
        self.standards = set() # of the files that parts of the tree come from
        self.tagged = []       # what stands for arrays and large integers
        self.counts = {}       # how often an object occurs, by its id
        self.forms = {}        # (the object, the dict or list that stands for it in the tree), by its id
        self.arrays = []       # (array or node, members to be filled in)
        self.anchors = {}

    # collecting

    def survey(self, tree):
        """Find all objects of a tree, and give its arrays blocks."""
        self.root = self._root_of(tree)
        self.forms[id(tree)] = tree, self.root
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
        tag = tag if tag is not None and tag.startswith(ROOT) else None
        library = TaggedMapping(STSCI + "core/software-1.0.0",
                                {"author": "The zcore developers", "name": "zcore", "version": __version__})
        rest = {name: value for name, value in tree.items() if name != "asdf_library"}
        return TaggedMapping(tag, {"asdf_library": library, **rest})

    def set_tags(self, standard):
        """Give all values the tags that they have in a version of the standard, and return it; None: the newest one."""
        if standard is None:
            standard = max(self.standards, key=_version_of, default=STANDARD_VERSION)
        version = _version_of(standard)
        if self.root.tag is None:
            self.root.tag = ROOT + ("1.1.0" if version >= (1, 2) else "1.0.0")
        for form in self.tagged:
            name, _, of_form = form.tag.rpartition("-")
            if of_form in ("1.0.0", "1.1.0"):
                form.tag = f"{name}-{'1.1.0' if version >= (1, 6) else '1.0.0'}"
        return standard

    def _form_of(self, value, where):
        """Return the dict or list that stands for an object, or None for a scalar."""
        if isinstance(value, TaggedMapping) and value.standard is not None:
            self.standards.add(value.standard)
        if isinstance(value, Reference) and self.directory is not None:
            value.check_reach(self.directory)
        if isinstance(value, IntegerNode):
            self.tagged.append(value.copy())
            return self.tagged[-1]
        if isinstance(value, dict | list | tuple):
            return value
        form = self._form_of_other(value, where)
        if form is not None and not (isinstance(value, NDArrayNode) and value.origin.standard is None):
            self.tagged.append(form)
        return form

    def _form_of_other(self, value, where):
        if isinstance(value, np.generic):
            if value.dtype.kind in "biufcSU" and value.dtype.char not in "gG":
                return None
            value = np.asarray(value)
        if isinstance(value, NDArrayNode):
            return self._form_of_node(value, where)
        if isinstance(value, Stream):
            datatype, byteorder = _datatype_of(value.dtype, where)
            members = {"source": -1, "datatype": datatype, "byteorder": byteorder, "shape": ["*", *value.shape]}
            if any(isinstance(other, Stream) for other, _ in self.arrays):
                raise ValueError(f"{where}: a file has one stream, the tree has another")
            self.arrays.append((value, members))
            return TaggedMapping(_ARRAY, members)
        if isinstance(value, Inline):
            array = value.array
            if array.ndim:
                datatype, _ = _datatype_of(array.dtype, where)
                return TaggedMapping(_ARRAY, {"data": lists_of(array), "datatype": _unordered(datatype),
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
        form = TaggedMapping(_ARRAY, {"source": None, "datatype": datatype, "byteorder": byteorder,
                                      "shape": list(array.shape)})
        if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask:
            if array.dtype.names is not None:
                raise UnsupportedError(f"{where}: ASDF has no masks of fields", feature="masks of fields")
            form["mask"] = value.mask
        self.arrays.append((array, form))
        return form

    def _form_of_node(self, node, where):
        if node.origin.standard is not None:
            self.standards.add(node.origin.standard)
        if node.is_list:
            return TaggedSequence(node.tag, node.members["data"])
        form = TaggedMapping(node.tag, node.members)
        source = node.source
        if source is None:
            return form
        if self.embed or not isinstance(source, str) or source[:1] in ("", "#"):
            self.arrays.append((node, form))
        else:
            try:
                node.origin.check_reach(source, self.directory)
            except ValueError as exc:
                raise ValueError(f"{where}: {exc}") from None
        return form

    def _place_arrays(self):
        given = [array for array, _ in self.arrays if isinstance(array, np.ndarray)]
        pieces = iter(pieces_of(given))
        numbers = {}
        stream = next((array for array, _ in self.arrays if isinstance(array, Stream)), None)
        for array, members in self.arrays:
            if array is stream:
                continue
            if isinstance(array, NDArrayNode):
                memory = array.block
            else:
                piece = next(pieces)
                memory = piece.memory
                if piece.offset:
                    members["offset"] = piece.offset
                if piece.strides is not None:
                    members["strides"] = self._own(piece.strides)
            if id(memory) not in numbers:
                is_streamed = stream is None and getattr(memory, "is_streamed", False)
                # The memory is kept, so that no other has its id.
                numbers[id(memory)] = (self.add_block(memory, streamed=True) if is_streamed else self.add_block(memory),
                                       memory)
            members["source"] = number = numbers[id(memory)][0]
            if isinstance(array, NDArrayNode) and array.is_streamed and number != -1:
                # Other blocks may follow its block.
                members["shape"] = self._own(array.shape)
        if stream is not None:
            self.add_block(np.empty(0, np.uint8), streamed=True)

    def _own(self, numbers):
        """Return a new list of the tree."""
        form = list(numbers)
        self.forms[id(form)], self.counts[id(form)] = (form, form), 1
        return form

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
