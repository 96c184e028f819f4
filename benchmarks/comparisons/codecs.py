"""Codecs with other types and other libraries' names for them: whole arrays of 64 chunks, read and written.

`CASES` is the table. The workloads of `workloads` are float32 and losslessly encoded, and libraries that share their
files know all the codecs; here each library has a document of its own over the same chunks. Every array is written by
zcore once and lies in memory; each library reads these chunks, and what it writes is read by zcore. Libraries take
turns, the first round is not counted, and a wrong answer has no time.
"""
import json
import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass, field

import numpy as np

import zcore
from benchmarks import adapters
from benchmarks.harness.timing import timed
from benchmarks.inputs.encodings import V2, V3

N_CHUNKS = 64
LIBRARIES = ("zcore", "zarr", "zarrs", "tensorstore")


@dataclass(frozen=True)
class Case:
    """One codec with its data.

    Attributes
    ----------
    name : str
    data : str
        Of `_DATA`.
    members : dict
        Of the document, beside the shape and the chunks.
    length : int
        Elements of a chunk.
    view : {"v3", "v2"}
    names : dict
        Library to its name of the codec, where that is another one.
    """

    name: str
    data: str
    members: dict
    length: int
    view: str = V3
    names: dict = field(default_factory=dict)


def _v3(data_type, fill_value, *codecs):
    return {"data_type": data_type, "fill_value": fill_value, "codecs": [
        codec if isinstance(codec, dict) else {"name": codec} for codec in codecs]}


def _v2(compressor):
    return {"dtype": "<f4", "fill_value": 0.0, "compressor": compressor, "filters": None, "order": "C",
            "dimension_separator": "."}


_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_SCALE = {"name": "scale_offset", "configuration": {"offset": 1000, "scale": 2}}


def _cast(data_type, **parameters):
    return {"name": "cast_value", "configuration": {"data_type": data_type, **parameters}}


def _bitround(keepbits):
    return {"name": "bitround", "configuration": {"keepbits": keepbits}}


_BITROUND_NAMES = dict.fromkeys(("zarr", "zarrs"), "numcodecs.bitround")
CASES = (
    Case("bitround, float32", "smooth", _v3("float32", 0.0, _bitround(10), _BYTES), 2**18, names=_BITROUND_NAMES),
    Case("bitround, float64", "smooth64", _v3("float64", 0.0, _bitround(20), _BYTES), 2**17, names=_BITROUND_NAMES),
    Case("packbits, bool", "flags", _v3("bool", False, "packbits"), 2**20),
    Case("cast_value, float64 to float32", "smooth64", _v3("float64", 0.0, _cast("float32"), _BYTES), 2**17),
    Case("cast_value, float64 to int16", "whole64", _v3("float64", 0.0, _cast("int16"), _BYTES), 2**17),
    Case("cast_value, float32 to uint8, clamped", "whole32", _v3(
        "float32", 0.0, _cast("uint8", out_of_range="clamp"), _BYTES), 2**18),
    Case("cast_value, int32 to int16", "counts", _v3("int32", 0, _cast("int16"), _BYTES), 2**18),
    Case("scale_offset, float32", "smooth", _v3("float32", 0.0, {"name": "scale_offset", "configuration": {
        "offset": 5.0, "scale": 0.5}}, _BYTES), 2**18),
    Case("scale_offset, int32", "counts", _v3("int32", 0, _SCALE, _BYTES), 2**18),
    Case("vlen-utf8", "words", _v3("string", "", "vlen-utf8"), 2**14),
    Case("vlen-bytes", "pieces", _v3("variable_length_bytes", "", "vlen-bytes"), 2**14),
    Case("bz2", "smooth", _v2({"id": "bz2", "level": 1}), 2**16, V2),
    Case("lzma", "smooth", _v2({"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None}), 2**15, V2),
)


def _smooth(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (100 * np.sin(np.arange(n) / 500) + rng.standard_normal(n) / 10).round(2).astype(dtype)


def _words(n):
    rng = np.random.default_rng(0)
    letters = np.frombuffer("abcdefghijklmnopqrstuvwxyz äöü".encode("utf-32-le"), "<u4")
    lengths = rng.integers(0, 48, 512)
    some = ["".join(map(chr, rng.choice(letters, length))) for length in lengths]
    return [some[i] for i in rng.integers(0, len(some), n)]


def _pieces(n):
    out = np.empty(n, object)
    out[:] = [word.encode() for word in _words(n)]
    return out


_DATA = {
    "smooth": lambda n: _smooth(n, "f4"),
    "smooth64": lambda n: _smooth(n, "f8"),
    "whole64": lambda n: np.rint(100 * _smooth(n, "f8")),
    "whole32": lambda n: 3 * _smooth(n, "f4"),
    "counts": lambda n: np.rint(100 * _smooth(n, "f8")).astype("i4"),
    "flags": lambda n: _smooth(n, "f4") > 20,
    "words": lambda n: np.array(_words(n), np.dtypes.StringDType()),
    "pieces": _pieces,
}


@dataclass(frozen=True)
class Timing:
    """Seconds of reading and of writing one case by one library, or why there are none."""

    case: str
    library: str
    read: tuple = ()
    write: tuple = ()
    failed: str = ""


def _let_zarrs_pack_bits():
    """Make zarr-python hand on a codec that it does not know itself, and the pipeline in Rust does."""
    from zarr.abc.codec import ArrayBytesCodec
    from zarr.registry import register_codec

    class Packbits(ArrayBytesCodec):
        is_fixed_size = True

        @classmethod
        def from_dict(cls, members):
            return cls()

        def to_dict(self):
            return {"name": "packbits", "configuration": {"padding_encoding": "none"}}

        def compute_encoded_size(self, n_bytes, spec):
            raise NotImplementedError

    register_codec("packbits", Packbits)


def _create(path, case, shape, length, library):
    text = json.dumps(case.members)
    if library in case.names:
        name = case.name.partition(",")[0]
        text = text.replace(f'"{name}"', f'"{case.names[library]}"')
    members = json.loads(text)
    if case.view == V2:
        members |= {"zarr_format": 2, "shape": shape, "chunks": [length]}
    else:
        members |= {"zarr_format": 3, "node_type": "array", "shape": shape, "attributes": {}, "chunk_grid": {
            "name": "regular", "configuration": {"chunk_shape": [length]}}, "chunk_key_encoding": {
            "name": "default", "configuration": {"separator": "/"}}}
    os.mkdir(path)
    with open(os.path.join(path, ".zarray" if case.view == V2 else "zarr.json"), "w") as file:
        json.dump(members, file)


def _same(found, expected):
    if expected.dtype.kind == "f":
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    return np.array_equal(np.asarray(found).astype(expected.dtype), expected)


def measure(names=None, repeats=9, threads=2, quick=False):
    """Return a list of `Timing`.

    Parameters
    ----------
    names : list of str, optional
        Beginnings of cases' names; all by default.
    repeats, threads : int
    quick : bool
        Small chunks and one repeat, for checks of the harness; times mean nothing.
    """
    libraries, _ = adapters.load_all(LIBRARIES, threads)
    if "zarrs" in libraries:
        _let_zarrs_pack_bits()
    found = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for case in CASES:
        if names is None or case.name.startswith(tuple(names)):
            with tempfile.TemporaryDirectory(prefix="zcore-benchmarks-", dir=memory) as top:
                found += _measure_case(top, case, libraries, 1 if quick else repeats, 2**8 if quick else case.length)
    return found


def _measure_case(top, case, libraries, repeats, length):
    source = _DATA[case.data](N_CHUNKS * length)
    shape = [len(source)]
    reference = os.path.join(top, "reference")
    _create(reference, case, shape, length, "zcore")
    zcore.open(reference, mode="r+")[...] = source
    expected = zcore.open(reference)[...]
    samples, failed = {name: ([], []) for name in libraries}, {}
    for name in libraries:
        path = os.path.join(top, name)
        _create(path, case, shape, length, name)
        for entry in os.scandir(reference):
            if entry.name not in (".zarray", "zarr.json"):
                os.symlink(entry.path, os.path.join(path, entry.name))
    order = list(libraries)
    for i in range(-1, repeats):
        for k in range(len(order)):
            name = order[(i + k) % len(order)]
            if name in failed:
                continue
            try:
                seconds = (_read(libraries[name], os.path.join(top, name), case, expected),
                           _write(libraries[name], os.path.join(top, f"{name}-new"), case, (source, expected), length,
                                  name))
            except Exception as exc:  # noqa: BLE001 (whatever a library raises is its result)
                failed[name] = f"{type(exc).__name__}: {exc}".strip()[:200]
                continue
            if i >= 0:
                for taken, sample in zip(samples[name], seconds, strict=True):
                    taken.append(sample)
    return [Timing(case.name, name, failed=failed[name]) if name in failed
            else Timing(case.name, name, *map(tuple, samples[name])) for name in libraries]


def _read(library, path, case, expected):
    library.activate()
    handle = library.open(path, case.view)
    seconds, result = timed(library.read, handle)
    if not _same(result, expected):
        raise ValueError("the array read differs from the one written")
    return seconds


def _write(library, path, case, values, length, name):
    source, expected = values
    shutil.rmtree(path, ignore_errors=True)
    _create(path, case, [len(source)], length, name)
    library.activate()
    handle = library.open_to_write(path, case.view)
    seconds, _ = timed(library.write, handle, source)
    if not _same(zcore.open(path)[...], expected):
        raise ValueError("the chunk files do not hold the array written")
    return seconds


def render(timings):
    """Return the Markdown of measurements: milliseconds of zcore, of the others their time over zcore's."""
    peers = [name for name in LIBRARIES if name != "zcore"]
    lines = [f"| codec | | zcore, ms | {' | '.join(peers)} |", "|---|---|---:|" + "---:|" * len(peers)]
    by_case = {}
    for timing in timings:
        by_case.setdefault(timing.case, {})[timing.library] = timing
    for case, found in by_case.items():
        for direction in ("read", "write"):
            base = getattr(found["zcore"], direction)
            if not base:
                lines.append(f"| {case} | {direction} | {found['zcore'].failed} |")
                continue
            cells = [f"{1e3 * min(base):.1f} / {1e3 * statistics.median(base):.1f}"]
            for name in peers:
                other = getattr(found[name], direction) if name in found else ()
                cells.append(f"{min(other) / min(base):.2f} / {statistics.median(other) / statistics.median(base):.2f}"
                             if other else "")
            lines.append(f"| {case} | {direction} | {' | '.join(cells)} |")
    failures = [f"{timing.case}: {timing.library}: {timing.failed}" for timing in timings if timing.failed]
    return "\n".join(lines) + "\n\nMinima / medians.\n" + "".join([f"- {failure}\n" for failure in failures])
