"""The tree of an ASDF file: YAML 1.1 text to values.

PyYAML's parser, that of libyaml where it is built in, gives the events of the text; values are made of them here, in
one loop without recursion, so that no text is too deep for the stack. Nothing but plain data comes out: dicts, lists
and scalars, arrays as `NDArrayNode`, and values with an unknown tag as plain data with that tag. No tag makes an object
of a class that it names.

An anchor and its aliases are one object, as they are in the file; a mapping may be part of itself. Code that walks a
tree has to expect it.
"""
from __future__ import annotations

import re
import sys
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING
from weakref import ref

from zcore.asdf.tree.dump import dump
from zcore.asdf.tree.ndarray import NDArrayNode
from zcore.asdf.tree.origin import Origin, Reference
from zcore.asdf.tree.scalars import OWN_TAGS, SCALARS, complex_number, import_yaml, plain_value, value_of
from zcore.asdf.tree.tagged import (
    MAX_DEPTH,
    STSCI,
    YAML,
    IntegerNode,
    TaggedMapping,
    TaggedScalar,
    TaggedSequence,
    shown,
)
from zcore.errors import AsdfFormatError, UnsupportedError, warn
from zcore.text.object_memory import MAX_OBJECTS_NBYTES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from zcore.typing import Buffer

__all__ = ["dump", "load"]

MAX_PLAIN = 4096      # plain scalars that are known again
MAX_DIRECTIVES = 100  # of tags; libyaml compares each with all others
MAX_MERGED = 1 << 20  # members that `<<` copies, all together
# Upper bounds, in bytes of Python's objects. PLACE: an item of a list; a member of a mapping has two. SCALAR: what a
# text or number takes beside itself. COLLECTION: a list or mapping. TAGGED: a value with a tag, or a reference.
_NBYTES_OF_PLACE, _NBYTES_OF_SCALAR, _NBYTES_OF_COLLECTION = 64, 16, 200
_NBYTES_OF_TAGGED, _NBYTES_OF_ANCHOR, _NBYTES_OF_WARNING = 400, 300, 1000

_line_end = re.compile(rb"\r\n?|\n").finditer
_version = re.compile(rb"%YAML[ \t]+([0-9]+)\.([0-9]+)[ \t]*\r?(?:\n|$)").match
_core = lru_cache(re.compile(re.escape(STSCI) + r"core/(ndarray|complex|integer)-([0-9]+)\.[0-9]+\.[0-9]+").fullmatch)


def load(text: Buffer, blocks: Sequence[Any] = (), *, origin: Origin | None = None) -> Any:
    """Return the tree of a text.

    Parameters
    ----------
    text : bytes
        From ``%YAML`` to the end of the document; empty where the file has no tree.
    blocks : sequence of Block
        Those of the file.
    origin : Origin, optional
        Instead of blocks: it knows the file and other files as well.

    Returns
    -------
    object
        A dict, or one with a tag; an empty dict where there is no tree.

    Raises
    ------
    AsdfFormatError
        The text is not a tree; `offset` is the byte where that shows, as far as it is known.
    UnsupportedError
        It is of another version of YAML.

    Notes
    -----
    ASDF file layout, "Tree"; ASDF standard, "YAML subset": since version 1.6.0 keys are texts, integers and truth
    values. Before, any scalar was one, so all are read.

    Examples
    --------
    >>> load(b"%YAML 1.1\\n---\\na: &x [1, 2]\\nb: *x\\n...\\n")
    {'a': [1, 2], 'b': [1, 2]}
    """
    text = bytes(text)
    if origin is None:
        origin = Origin(blocks, len(text))
    if not text:
        return {}
    _check_version(text)
    yaml = import_yaml()
    maker, parser = _TreeMaker(yaml, origin), None
    try:
        # That of libyaml, where PyYAML was built with it.
        parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        root = maker.make(parser.get_event)
    except AsdfFormatError:
        raise
    except (yaml.YAMLError, ValueError) as exc:
        # The parser in Python raises ValueError for an escape beyond Unicode.
        raise _error_of(exc, text) from exc
    finally:
        if parser is not None:
            parser.dispose()
    if maker.has_references:
        origin.root = root
    return root


def _check_version(text):
    found = _version(text)
    if found is None:
        raise AsdfFormatError("the tree does not begin with the line %YAML 1.1", offset=0)
    if (n := text.count(b"%TAG")) > MAX_DIRECTIVES:
        raise AsdfFormatError(f"the tree: expected at most {MAX_DIRECTIVES} directives %TAG, found {n}")
    version = int(found[1][:9]), int(found[2][:9])
    if version == (1, 2):
        warn("the tree is YAML 1.2, read as YAML 1.1: some plain scalars mean other values there")
    elif version != (1, 1):
        raise UnsupportedError(f"the tree is YAML {version[0]}.{version[1]}, YAML 1.1 is read",
                               feature=f"YAML {version[0]}.{version[1]}")


def _error_of(exc, text):
    mark = getattr(exc, "problem_mark", None)
    what = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "it is not YAML"
    if mark is None:
        return AsdfFormatError(f"the tree cannot be read: {what}", offset=getattr(exc, "position", None))
    # Marks count characters, and lines.
    starts = chain([0], (found.end() for found in _line_end(text)))
    offset = next(islice(starts, mark.line, None), len(text))
    return AsdfFormatError(f"the tree cannot be read, line {mark.line + 1}: {what}", offset=offset)


class _Frame:
    """A list or mapping whose members are being read."""

    __slots__ = ("value", "target", "is_mapping", "key", "has_key", "merged", "anchor")

    def __init__(self, value, target, is_mapping, anchor):
        self.value = value        # as in the tree
        self.target = target      # the dict or list that takes the members
        self.is_mapping = is_mapping
        self.key = None
        self.has_key = False
        self.merged = None        # the mappings that `<<` names
        self.anchor = anchor


_MERGE = object()  # in place of a key


class _TreeMaker:
    """Makes a tree of events."""

    def __init__(self, yaml, origin):
        self.yaml = yaml
        self.origin = origin
        self.anchors = {}
        self.n_merged = 0
        self.room = MAX_OBJECTS_NBYTES
        self.odd_tags = set()
        self.plain = {}        # values of texts without a tag; most occur often
        self.has_references = False

    def make(self, get_event):
        """Return the value of the only document; its other events are read to the end."""
        yaml = self.yaml
        scalar, alias = yaml.ScalarEvent, yaml.AliasEvent
        mapping, sequence = yaml.MappingStartEvent, yaml.SequenceStartEvent
        mapping_end, sequence_end = yaml.MappingEndEvent, yaml.SequenceEndEvent
        assert isinstance(get_event(), yaml.StreamStartEvent)
        event = get_event()
        if not isinstance(event, yaml.DocumentStartEvent):
            raise AsdfFormatError("the tree has no document")
        stack, root, plain = [], None, self.plain
        while True:
            event = get_event()
            kind = type(event)
            self.room -= _NBYTES_OF_PLACE
            if self.room < 0:
                raise self._error(f"expected values that take at most {MAX_OBJECTS_NBYTES} bytes of memory, found more",
                                  event)
            if kind is scalar:
                value = plain.get(event.value, plain) if event.tag is None and event.implicit[0] else plain
                if value is plain:
                    value = self._scalar(event, bool(stack) and stack[-1].is_mapping and not stack[-1].has_key)
                    self.room -= _NBYTES_OF_SCALAR + sys.getsizeof(value)
                if event.anchor is not None:
                    # An alias of << does not merge.
                    self._name(event, event.value if value is _MERGE else value)
            elif kind is mapping or kind is sequence:
                if len(stack) >= MAX_DEPTH:
                    raise self._error(f"the tree has more than {MAX_DEPTH} levels", event)
                stack.append(self._opened(event, kind is mapping))
                continue
            elif kind is mapping_end or kind is sequence_end:
                value = self._closed(stack.pop(), event)
            elif kind is alias:
                if event.anchor not in self.anchors:
                    raise self._error(f"*{event.anchor:.100} has no anchor", event)
                value = self.anchors[event.anchor]
            else:
                break
            if not stack:
                root = value
                continue
            frame = stack[-1]
            if frame.has_key and frame.key is not _MERGE and frame.key not in frame.target:
                frame.has_key = False
                frame.target[frame.key] = value
            elif frame.is_mapping:
                self._add(frame, value, event)
            else:
                frame.target.append(value)
        if not isinstance(get_event(), yaml.StreamEndEvent):
            raise AsdfFormatError("the tree has more than one document")
        return root

    def _name(self, event, value):
        self.room -= _NBYTES_OF_ANCHOR + sys.getsizeof(event.anchor)
        self.anchors[event.anchor] = value

    def _opened(self, event, is_mapping):
        tag = event.tag
        self.room -= _NBYTES_OF_COLLECTION
        if tag is None or tag in ("!", YAML + "map", YAML + "seq"):
            value = target = {} if is_mapping else []
        else:
            value, target = self._tagged(tag, is_mapping)
        if event.anchor is not None:
            self._name(event, value)
        return _Frame(value, target, is_mapping, event.anchor)

    def _tagged(self, tag, is_mapping):
        """Return a new value with a tag, and the dict or list that takes its members."""
        self.room -= _NBYTES_OF_TAGGED + sys.getsizeof(tag)
        found = self._known(tag)
        if found == "ndarray":
            target = {} if is_mapping else []
            value = NDArrayNode(tag, target, self.origin, is_list=not is_mapping)
            self.origin.arrays.append(ref(value))
        elif found == "integer" and is_mapping:
            value = target = IntegerNode(tag, (), self.origin.standard)
        elif is_mapping:
            value = target = TaggedMapping(tag, (), self.origin.standard)
        else:
            value = target = TaggedSequence(tag)
        return value, target

    def _known(self, tag):
        """Return the name of the type that a tag means, if zcore interprets it, or None."""
        found = _core(tag) if tag.startswith(STSCI) else None
        if found is None:
            return None
        if found[2] == "1":
            return found[1]
        if tag not in self.odd_tags:
            self.odd_tags.add(tag)
            self.room -= _NBYTES_OF_WARNING
            warn(f"{tag} has a version that is not known; it is left as it is")
        return None

    def _closed(self, frame, event):
        value = frame.value
        if frame.merged is not None:
            self._merge(frame, event)
        if type(value) is dict and isinstance(value.get("$ref"), str):
            self.has_references = True
            self.room -= _NBYTES_OF_TAGGED
            value = Reference(value, self.origin)
            if frame.anchor is not None and self.anchors.get(frame.anchor) is frame.value:
                self.anchors[frame.anchor] = value
        return value

    def _add(self, frame, value, event):
        """Take a key, or a value that needs more than an assignment."""
        if not frame.has_key:
            if value is not _MERGE and not isinstance(value, SCALARS):
                raise self._error(f"expected keys that are scalars, found {shown(value)}", event)
            frame.key, frame.has_key = value, True
        else:
            frame.has_key = False
            if frame.key is _MERGE:
                frame.merged = [] if frame.merged is None else frame.merged
                frame.merged.append(value)
                return
            if frame.key in frame.target:
                self.room -= _NBYTES_OF_WARNING
                warn(f"the tree, line {event.start_mark.line + 1}: the key {frame.key!r:.100} is there twice; the last "
                     "one counts")
            frame.target[frame.key] = value

    def _merge(self, frame, event):
        """Add the members of other mappings that this one does not have; the first mapping that has one counts."""
        for value in frame.merged:
            for other in value if isinstance(value, list) else [value]:
                if not isinstance(other, dict):
                    raise self._error(f"<<: expected mappings, found {type(other).__name__}", event)
                self.n_merged += len(other)
                self.room -= 2 * _NBYTES_OF_PLACE * len(other)
                if self.n_merged > MAX_MERGED:
                    raise self._error(f"<< copies more than {MAX_MERGED} members", event)
                for key, member in list(other.items()):
                    frame.target.setdefault(key, member)

    def _scalar(self, event, is_key):
        tag, text = event.tag, event.value
        try:
            if tag is None or tag == "!":
                if tag is None and event.implicit[0]:
                    if text == "<<":
                        return _MERGE if is_key else text
                    value = plain_value(text)
                    if len(self.plain) < MAX_PLAIN:
                        self.plain[text] = value
                    return value
                return text
            if tag in OWN_TAGS:
                return value_of(tag, text)
            self.room -= _NBYTES_OF_TAGGED + sys.getsizeof(tag)
            return complex_number(text) if self._known(tag) == "complex" else TaggedScalar(tag, text)
        except AsdfFormatError as error:
            raise self._error(error.message, event) from error

    @staticmethod
    def _error(what, event):
        return AsdfFormatError(f"the tree, line {event.start_mark.line + 1}: {what}")
