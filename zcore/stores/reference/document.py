"""Read a reference set in JSON, of version 0 or 1.

References specification, version 0: an object of references; version 1: that as the member "refs", with templates for
URLs and generated references beside it. The document is not trusted: it is parsed strictly, into columns, and generated
references are counted before they are made.
"""
from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from zcore.errors import CodecError, InvalidKeyError, OutOfMemoryError, ReferenceFormatError, warn
from zcore.kernel.codec.program import Program
from zcore.kernel.refs.json import members_of, read_references
from zcore.kernel.refs.table import ReferenceTable
from zcore.stores.keys import check_key
from zcore.text.object_memory import MAX_OBJECTS_NBYTES, excess_of_json, room_for
from zcore.text.strict_json import STRICT, WITH_CONSTANTS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_NBYTES = 1 << 31
# Bytes of memory, beside the document: of the table, to which three times the document are added; of the objects of
# Python that one of the members templates and gen makes; of those that stand for one value.
MAX_TABLE_NBYTES = MAX_OBJECTS_NBYTES * 2 // 3
MAX_MEMBER_NBYTES = MAX_OBJECTS_NBYTES // 8
MAX_VALUE_NBYTES = MAX_OBJECTS_NBYTES // 2
NBYTES_OF_RENDERED = 64    # a URL takes so many bytes beside its text, until it is in the table
MIN_DECOMPRESSED = 1 << 20
MAX_DECOMPRESSED = 1 << 29  # of a compressed document, in which a few bytes may encode so many
STEPS: dict[str, tuple[str | int, ...]] = {"gzip": ("gzip", 1), "zstd": ("zstd", 0, False)}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def read_document(raw: bytes, *, target: str | None = None, template_overrides: Mapping[str, str] | None = None,
                  max_generated: int | None = None) -> ReferenceTable:
    """Return the `ReferenceTable` of a document.

    Parameters
    ----------
    raw : bytes
    target : str, optional
        The URL of references without one.
    template_overrides : mapping of str to str, optional
        Templates that replace those of the document, or are added.
    max_generated : int, optional
        Maximum number of references that the document generates. It also raises the memory that they may take.

    Raises
    ------
    ReferenceFormatError
        It is no reference set.
    UnsupportedError
        It needs a package that is not installed.

    Notes
    -----
    References checklist, RF-DOC-01: a document may be compressed. Its first bytes show that.
    """
    for magic, name in _MAGIC.items():
        if raw.startswith(magic):
            raw = _decompressed(raw, name)
    if len(raw) > MAX_NBYTES:
        raise ReferenceFormatError(f"the reference set has {len(raw)} bytes, at most {MAX_NBYTES} are read")
    table, takes_null = ReferenceTable(), target is not None
    max_nbytes = 3 * len(raw) + MAX_TABLE_NBYTES
    table.limit(max_nbytes)
    members, n_members, is_read = members_of(raw, table=table, compact=_compact, takes_null=takes_null)
    if _version_of(raw, members, n_members) == 0:
        read_references(table, raw, 0, _compact, takes_null=takes_null)
        templates = None
    else:
        if n_members > len(members):
            members_of(raw, _strict)
            warn(f"a reference set of version 1 has members templates, gen and refs; {n_members - len(members)} others "
                 "are ignored")
        if "refs" in members and not is_read:
            read_references(table, raw, members["refs"][0], _compact, takes_null=takes_null)
        templates = _member(raw, members, "templates", {})
    if templates is not None:
        _render(table, templates, template_overrides, _member(raw, members, "gen", []), max_generated, max_nbytes)
    if target is not None:
        table.set_targets([target if url is None else url for url in table.targets])
    table.limit()     # what the caller adds is not of the document
    return table


def _decompressed(raw, name):
    """Return the content of a compressed document. Its size may be unknown, so the limit grows step by step."""
    program, limit = Program((STEPS[name],)), MIN_DECOMPRESSED
    while True:
        limit = min(limit, MAX_DECOMPRESSED)
        try:
            return bytes(program.decode_new(raw, limit, True, (name,)))
        except CodecError as error:
            if error.expected != limit or error.found is None or error.found <= limit:
                raise ReferenceFormatError(f"a reference set that is compressed by {name}: {error.message}") from error
            if limit == MAX_DECOMPRESSED:
                raise ReferenceFormatError(f"expected a reference set of {limit} bytes at the most, found more in one "
                                           f"that is compressed by {name}") from error
        limit = max(4 * limit, 8 * len(raw))


def _compact(text):
    """Return the value for an object: JSON without blanks, its members in their sequence.

    It may have NaN and infinities, as attributes that Python's json has written do.
    """
    value = _decoded(WITH_CONSTANTS, text, room_for(len(text), MAX_VALUE_NBYTES))
    return json.dumps(value, separators=(",", ":")).encode()


def _strict(text):
    """Return the value of a part of the document, parsed by RFC 8259 without repeated names."""
    return _decoded(STRICT, text, MAX_MEMBER_NBYTES)


def _decoded(decoder, text, max_nbytes):
    if reason := excess_of_json(text, max_nbytes):
        raise ReferenceFormatError(reason)
    return decoder.decode(text.decode())


def _version_of(raw, members, n_members):
    if "version" not in members:
        if "refs" in members and raw[members["refs"][0]:members["refs"][0] + 1] == b"{" and n_members == 1:
            warn("a reference set with the member refs and without a version is read as one of version 1")
            return 1
        return 0
    start = members["version"][0]
    if "refs" not in members and raw[start:start + 1] in (b'"', b"[", b"{"):
        return 0     # a key of that name, whose object may have constants, as any other's
    version = _member(raw, members, "version")
    if type(version) is int and version == 1:
        return 1
    raise ReferenceFormatError(f"version: expected 1, or none for version 0, found {version!r:.60}", member="version")


def _member(raw, members, name, default=None):
    """Return the value of a member."""
    if name not in members:
        return default
    start, stop = members[name]
    try:
        return _strict(raw[start:stop])
    except ValueError as exc:
        raise ReferenceFormatError(f"{name}: {exc}", member=name) from None


def _render(table, definitions, overrides, gen, max_generated, max_nbytes):
    """Render the URLs of a table, and add the generated references."""
    if definitions == {} and not overrides and gen == []:
        return
    from zcore.stores.reference.templates import Templates

    templates = Templates(definitions, overrides)
    # As in fsspec: without templates, braces have a meaning only in `gen`.
    if definitions != {} or overrides:
        table.set_targets(_rendered(table, templates, max_nbytes))
    if gen != []:
        from zcore.stores.reference.gen import MAX_REFERENCES, NBYTES_EACH, Generation

        table.limit(max(max_nbytes, NBYTES_EACH * (max_generated or 0)), "; max_generated= allows more")
        generation = Generation(gen, templates, MAX_REFERENCES if max_generated is None else max_generated)
        n_before = len(table)
        try:
            for key, *found in generation.references():
                table.put(check_key(key).encode(), *found)
        except InvalidKeyError as exc:
            raise ReferenceFormatError(f"gen: {exc.message}", member="gen") from exc
        except MemoryError as exc:
            raise OutOfMemoryError(f"no memory for the {generation.count} references that gen makes",
                                   nbytes=getattr(exc, "nbytes", None) or table.nbytes) from exc
        n_replaced = generation.count - (len(table) - n_before)
        if n_replaced:
            warn(f"{n_replaced} references that gen makes replace others of the same key")


def _rendered(table, templates, max_nbytes):
    """Return the URLs of a table rendered. A few characters can become 64 KiB in each of them."""
    urls = table.targets
    rendered, n_bytes = list(urls), table.needed_nbytes
    for i in [i for i, url in enumerate(urls) if url is not None and "{" in url]:
        rendered[i] = url = templates.render(urls[i])
        n_bytes += NBYTES_OF_RENDERED + sys.getsizeof(url)
        if n_bytes > max_nbytes:
            raise ReferenceFormatError(f"templates: expected references that take at most {max_nbytes} bytes of "
                                       "memory, found URLs of more", member="templates")
    return rendered
