"""Describes an array of one format in another, and keeps as much of its chunks as the other can express.

If the format has the same codec chain, it is kept, and objects can be passed on as they are. Else the parts that the
format has are kept. Shards become chunks if it has no shards. Then filters and checksums are left out, and at last the
format chooses the compressor. The loss of attributes, names of dimensions and the fill value is noted for a warning.
"""
from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.engine.views import same_chunks
from zcore.errors import IncompleteCopyWarning, UnsupportedError, warn
from zcore.formats import format_of
from zcore.formats.json_documents import check_attributes, has_constants
from zcore.formats.zarr_v3.chain import parse_codec
from zcore.hierarchy.new_nodes import compressors_for
from zcore.model.metadata import NAMES_ATTRIBUTE, CodecSpec, has_varying_items
from zcore.model.named_codecs import named_codec

if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from typing import Any

    from zcore.formats.base import Format
    from zcore.model.metadata import ArrayMetadata
    from zcore.nodes.keywords import CodecsLike
    from zcore.tools.copy.sources import SourceArray, SourceGroup
    from zcore.typing import Chunks, Order, Shards

MISSING_ATTRIBUTE = "_FillValue"     # the value of missing elements in netCDF
_SHUFFLE = "numcodecs.shuffle"
_RENEWED = {"data_type", "fill_value", "codecs"}     # spellings that all readers understand are written instead


class CopyRequest(NamedTuple):
    """The caller's wishes for new arrays; None for the properties of the source.

    With `checksum` each chunk has a crc32c.
    """

    chunks: Chunks
    shards: Shards | None
    codecs: CodecsLike | None
    compressors: CodecsLike | str | None
    dtype: np.dtype[Any] | None
    order: Order | None
    checksum: bool | None = None

    def of(self, array: SourceArray, ranks: Set[int]) -> CopyRequest:
        """Return the request for one array of those that have `ranks`.

        Lengths of chunks and shards are for the arrays with as many dimensions; coordinates beside them keep theirs.
        """
        return self._replace(**{
            wish: None for wish, lengths in (("chunks", self.chunks), ("shards", self.shards))
            if isinstance(lengths, (tuple, list)) and len(lengths) != len(array.shape) and len(lengths) in ranks})


ENUMS = "the names of the numbers of enums"


class Losses:
    """Collects what a destination cannot keep, with the names of the nodes, which are relative to `path`.

    `takes_constants`: the destination keeps NaN and infinities in attributes, whatever the source is.
    """

    def __init__(self, path: str = "", takes_constants: bool = False) -> None:
        self._path = path
        self.takes_constants = takes_constants
        self._names = {}
        self._left_out = {}

    def note(self, what: str, name: str, verb: str = "does not keep") -> None:
        """Note that the node `name` has lost something. `what` names it in the plural."""
        self._names.setdefault(f"{verb} {what}", []).append(self._full(name))

    def leave_out(self, what: str, name: str) -> None:
        """Note that the member `name` of the source is not copied at all. `what` names its kind in the plural."""
        self._left_out.setdefault(what, []).append(self._full(name))

    def _full(self, name):
        return f"{self._path}/{name}".strip("/") or "the root"

    def warn(self, place: str) -> None:
        """Warn of each kind of loss, with the names of the nodes."""
        for what, names in self._names.items():
            warn(f"{place} {what}: {', '.join(names)}")
        for what, names in self._left_out.items():
            warn(f"{place} is not complete without {what}: {', '.join(names)}", IncompleteCopyWarning)


def described(source: SourceArray, format: Format, wanted: CopyRequest, name: str, losses: Losses) -> ArrayMetadata:
    """Return the metadata of a new array. They hold the attributes, wherever the format keeps these.

    Parameters
    ----------
    source : object
        See `zcore.tools.copy.sources`; its shape is that of the new array.
    format : Format
        Of the new array.
    wanted : CopyRequest
    name : str
        Of the source, for the warnings.
    losses : Losses

    Raises
    ------
    ValueError, TypeError, UnsupportedError
        The format cannot express the request.
    """
    attributes, names = kept_attributes(source, format, name, losses)
    # The metadata of the source, if they are of the same format.
    alike = source.metadata if source.metadata is not None and format.describes(source.metadata) else None
    if alike is not None:
        renewed = _RENEWED.intersection(format.spellings)
        alike = alike.replace(extra={key: value for key, value in alike.extra.items() if key not in renewed})
    if source.is_whole and alike is not None and not any([value is not None for value in wanted]):
        return alike.replace(attributes=attributes)
    settings: dict[str, Any] = {}
    if names is not None and format.has_dimension_names:
        settings["dimension_names"] = names
    if alike is not None and format.has_chunk_key_encoding:
        settings["chunk_key_encoding"] = alike.chunk_keys
    dtype = source.dtype if wanted.dtype is None else wanted.dtype
    if wanted.dtype is None and alike is not None and alike.data_type is not None:
        dtype = alike.data_type
    elif wanted.dtype is None and source.metadata is not None:
        dtype = source.metadata.type_of_items
    fault = None
    for fill_value in _fill_values(source, format, wanted):
        for chain in _chains(source, format, wanted):
            try:
                metadata = format.new_array(source.shape, dtype, fill_value=fill_value, **chain, **settings)
                format.render_array(metadata)
            except (ValueError, TypeError, UnsupportedError) as exc:
                fault = fault or exc
                continue
            stored = source.metadata
            if stored is not None and wanted.dtype is None and source.fill_value is not None and (
                    not _same_fill(source, metadata)):
                losses.note("fill values", name)
            if alike is not None:
                metadata = metadata.replace(extra=alike.extra)
            # A spelling in the document is no loss.
            elif stored is not None and (lost := set(stored.extra).difference(format_of(stored.zarr_format).spellings)):
                losses.note(f"members that the format does not define ({', '.join(sorted(lost))})", name)
            return metadata.replace(attributes=attributes)
    if name and type(fault) in (ValueError, TypeError):
        raise type(fault)(f"{name}: {fault}") from fault
    if name and type(fault) is UnsupportedError:
        raise UnsupportedError(f"{name}: {fault.message}", feature=fault.feature) from fault
    raise fault


def passes_on(source: SourceArray, metadata: ArrayMetadata) -> bool:
    """Return whether a new array has the objects of a source, under other names."""
    stored = source.metadata
    if stored is None or not source.is_whole:
        return False
    if metadata.fill_value is None and stored.fill_value is not None:
        # Absent chunks have a defined value in the source, and would not have one in the new array.
        return False
    if has_varying_items(metadata.dtype) and stored.fill_value != metadata.fill_value:
        return False
    return same_chunks(stored.replace(chunk_keys=metadata.chunk_keys), metadata)


def kept_attributes(source: SourceArray | SourceGroup, format: Format, name: str,
                    losses: Losses) -> tuple[dict[str, Any], tuple[str | None, ...] | None]:
    """Return the attributes of a new node and the names of its dimensions. In some formats these are attributes."""
    attributes = dict(source.attributes)
    names = getattr(source, "dimension_names", None)
    if names is not None and not format.has_dimension_names:
        if all([isinstance(label, str) for label in names]):
            attributes[NAMES_ATTRIBUTE] = list(names)
        else:
            losses.note("names of dimensions of which some have none", name)
        names = None
    if MISSING_ATTRIBUTE in attributes and hasattr(source, "dtype"):
        if format.masks_fill_value and (source.missing_value is not None or _is_fill_value(source, attributes)):
            del attributes[MISSING_ATTRIBUTE]     # it is the fill value
        elif format.strict_attributes and not (losses.takes_constants and source.dtype.kind == "f"):
            attributes[MISSING_ATTRIBUTE] = _missing_text(attributes[MISSING_ATTRIBUTE], source, format)
    takes_constants = not format.strict_attributes or losses.takes_constants or format.describes(source)
    for label in list(attributes):
        try:
            check_attributes({label: attributes[label]}, {}, takes_constants)
        except (ValueError, TypeError):
            del attributes[label]
            losses.note(f"the attribute {label!r:.60}, which is no JSON", name)
        else:
            if format.strict_attributes and has_constants(attributes[label]):
                losses.note(f"NaN or infinity in the attribute {label!r:.60}, which is no JSON, so some programs "
                            "refuse the document", name, "keeps")
    return attributes, names


def _is_fill_value(source, attributes):
    """Return whether the attribute ``_FillValue`` of an array of bytes is its fill value in Base64, as by xarray."""
    return source.dtype.kind == "S" and isinstance(source.fill_value, bytes) and (
        attributes[MISSING_ATTRIBUTE] == b2a_base64(source.fill_value, newline=False).decode())


def _missing_text(value, source, format):
    """Return the attribute ``_FillValue`` for Zarr v3. xarray has it in Base64 for some types (`FillValueCoder`)."""
    kind = source.dtype.kind
    is_number = type(value) in (int, float)
    is_alike = source.metadata is not None and format.describes(source.metadata)
    if is_alike and not (is_number and value - value != 0):
        return value     # as it was stored
    if kind == "f" and is_number:
        return b2a_base64(struct.pack("<d", value), newline=False).decode()
    if kind == "S":
        missing = source.missing_value
        if missing is None and source.metadata is not None and source.metadata.extra.get("fill_value") == value:
            missing = source.fill_value     # the text itself, as by netcdf-c
        return value if missing is None else b2a_base64(missing, newline=False).decode()
    return value


def missing_number(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the attribute ``_FillValue`` of an array, for floats as a number, if it is one in Base64."""
    with suppress(ValueError, struct.error):
        if dtype.kind == "f" and isinstance(value, str):
            return struct.unpack("<d", a2b_base64(value))[0]
    return value


def _fill_values(source, format, wanted):
    """Yield fill values: that of the source, then the format's choice."""
    value = source.fill_value
    if format.masks_fill_value and source.missing_value is not None:
        value = source.missing_value
    elif format.masks_fill_value and not source.fill_is_needed:
        value = None     # else readers would take elements for missing data
    if value is not None and wanted.dtype is not None:
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(value).astype(wanted.dtype)[()]
        except (ValueError, TypeError):
            value = ...
    yield value
    if value is not ...:
        yield ...


def _same_fill(source, metadata):
    if has_varying_items(metadata.dtype):
        return source.fill_value == metadata.fill_value
    return source.metadata.fill_bytes == metadata.fill_bytes


def _chains(source, format, wanted):
    """Yield keyword arguments for the format, from all properties of the source down to the format's choice."""
    chunks, shards = _chunks(source, format, wanted)
    if wanted.checksum and not format.has_checksum:
        raise UnsupportedError(f"checksum=True was asked for, and chunks of {format.title} have no checksum; pass "
                               "zarr_format=3", feature="checksums in other formats than Zarr v3")
    if wanted.codecs is not None:
        yield {"chunks": chunks, "codecs": _with_checksum(wanted.codecs) if wanted.checksum else wanted.codecs}
        return
    chain = source.codecs
    is_kept = chain is not None and wanted.dtype is wanted.compressors is wanted.order is None and (
        source.keeps_dimensions)
    if is_kept and wanted.chunks is wanted.shards is None:
        yield {"chunks": source.chunks_of_objects, "codecs": _with_checksum(chain) if wanted.checksum else chain}
    inner = source.inner_codecs
    if is_kept and shards is None:
        yield {"chunks": chunks, "codecs": _with_checksum(inner) if wanted.checksum and inner else inner}
    parts = _keywords_of(inner or ())
    order = source.order if wanted.order is None else wanted.order
    settings = {"chunks": chunks} if shards is None else {"chunks": chunks, "shards": shards}
    if not isinstance(order, str) or order != "C":
        settings["order"] = order
    # Left out one by one, if they cannot be expressed.
    kept = {"filters": parts["filters"]} if wanted.dtype is None and parts["filters"] else {}
    if wanted.compressors is not None:
        if not isinstance(wanted.compressors, str) or wanted.compressors != "auto":
            settings["compressors"] = _shuffled(source, wanted, compressors_for(format, wanted.compressors), parts)
    elif format.only_compressor is not None:
        if found := [codec for codec in parts["compressors"] if codec.name == format.only_compressor]:
            kept["compressors"] = found[:1]
    elif inner is not None:
        kept["compressors"] = parts["compressors"] or None
    if wanted.checksum:
        settings["checksum"] = True
    elif format.has_checksum and inner is not None:
        kept["checksum"] = parts["checksum"]
    yield {**settings, **kept}
    for name in list(kept):
        del kept[name]
        yield {**settings, **kept}
    if wanted.chunks is None:
        # A file that holds an array as one chunk: it may be too large, or not divide the requested shards.
        yield {**settings, "chunks": "auto"}


def _shuffled(source, wanted, compressors, parts):
    """Return the requested compressors with the shuffle of the source, if they have none."""
    given = list(compressors) if isinstance(compressors, (list, tuple)) else [compressors]
    names = [codec.name for codec in map(named_codec, given)]
    itemsize = (wanted.dtype or source.dtype).itemsize
    if not names or itemsize == 1 or {"blosc", "numcodecs.blosc", _SHUFFLE}.intersection(names) or (
            _SHUFFLE not in [codec.name for codec in parts["compressors"]]):
        return compressors
    return [CodecSpec(_SHUFFLE, {"elementsize": itemsize}), *given]


def _with_checksum(codecs):
    """Return a chain whose chunks have a crc32c: behind the other codecs, or in a shard behind those of its chunks."""
    codecs = [named_codec(codec) for codec in codecs]
    if not codecs:
        return codecs     # an error, which the format tells
    name, configuration = codecs[-1].name, codecs[-1].configuration
    if name == "sharding_indexed" and "codecs" in configuration:
        return [*codecs[:-1], CodecSpec(name, {**configuration, "codecs": _with_checksum(configuration["codecs"])})]
    return codecs if name == "crc32c" else [*codecs, CodecSpec("crc32c")]


def _chunks(source, format, wanted):
    """Return `chunks` and `shards` for a format's `new_array`."""
    shards = wanted.shards
    if shards is None and format.has_shards and source.shard_shape is not None:
        if wanted.chunks is None or _divides(wanted.chunks, source.shard_shape):
            shards = source.shard_shape
    if shards is False:
        shards = None
    return source.chunk_shape if wanted.chunks is None else wanted.chunks, shards


def _divides(chunks, shards):
    if not isinstance(chunks, (tuple, list)) or len(chunks) != len(shards):
        return False
    return all([type(chunk) is int and chunk > 0 and (
        shard % chunk == 0 if isinstance(shard, int) else shard.are_multiples_of(chunk))
                for chunk, shard in zip(chunks, shards, strict=True)])


def _keywords_of(chain):
    """Return the keywords of `new_array` for a chain of chunks."""
    names = [codec.name for codec in chain]
    at = next((i for i, name in enumerate(names) if name == "bytes" or name.startswith("vlen")), len(chain))
    compressors = [codec for codec in chain[at + 1:] if codec.name != "crc32c"]
    return {"filters": [codec for codec in chain[:at] if codec.name != "transpose"],
            "compressors": [_unfitted(codec) for codec in compressors], "checksum": "crc32c" in names[at + 1:]}


def _unfitted(codec):
    """Return a codec without the parameters that depend on the type."""
    if codec.name != "blosc":
        return codec
    return type(codec)("blosc", {name: value for name, value in codec.configuration.items()
                                 if name not in ("typesize", "blocksize")})


def inner_chain(codecs: Sequence[CodecSpec], ndim: int) -> tuple[CodecSpec, ...] | None:
    """Return the codecs of a chunk, also of one in a shard; None if those in a shard cannot be named."""
    if codecs[-1].name != "sharding_indexed" and any([codec.name == "sharding_indexed" for codec in codecs]):
        return None
    if codecs[-1].name != "sharding_indexed":
        return tuple(codecs)
    inner = tuple([parse_codec(codec, ndim) for codec in codecs[-1].configuration["codecs"]])
    return inner_chain((*codecs[:-1], *inner), ndim)
