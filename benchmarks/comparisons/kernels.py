"""The kernel's leaf functions alone: copy, checksum and header check, against `memcpy`.

The functions are those that other extensions `cimport`. Cython publishes each in its module's ``__pyx_capi__`` as a
capsule named with its C signature; ctypes calls the pointer, so no code is compiled for it and none stands between.
The signatures and `Copy` mirror ``zcore/kernel/*.pxd``; a signature that has changed is an error.
"""
import ctypes
import importlib
import statistics
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import native
from benchmarks.inputs import data

_MAX_NDIM = 64


class Copy(ctypes.Structure):
    """`zcore.kernel.strided.copy.Copy`."""

    _fields_ = [("ndim", ctypes.c_int), ("itemsize", ctypes.c_int64), ("swap", ctypes.c_int64),
                ("shape", ctypes.c_int64 * _MAX_NDIM), ("src_strides", ctypes.c_int64 * _MAX_NDIM),
                ("dst_strides", ctypes.c_int64 * _MAX_NDIM)]


@dataclass(frozen=True)
class Timing:
    """Seconds of one call (minimum and median), the bytes it treats, and the median of `memcpy` for as many."""

    name: str
    minimum: float
    median: float
    nbytes: int
    memcpy: float | None = None


def function(module, name, signature, restype, *argtypes):
    """Return a C function of ``zcore.kernel.<module>`` as a ctypes callable.

    Raises : ImportError, if the module is not built; TypeError, if its signature is another one.
    """
    capsule = importlib.import_module(f"zcore.kernel.{module}").__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.argtypes, get_name.restype = [ctypes.py_object], ctypes.c_char_p
    get_pointer.argtypes, get_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    found = get_name(capsule)
    if found.decode().split(" ", 1)[0] != signature.split(" ", 1)[0] or found.count(b",") != signature.count(","):
        raise TypeError(f"{module}.{name} is {found.decode()!r}, expected {signature!r}")
    return ctypes.CFUNCTYPE(restype, *argtypes)(get_pointer(capsule, found))


def _time(name, call, nbytes, repeats, memcpy=None):
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return Timing(name, min(seconds), statistics.median(seconds), nbytes, memcpy)


def measure(quick=False):
    """Return a list of `Timing`; every result is compared with NumPy's before it is timed.

    Raises : ImportError, if the kernel is not built; RuntimeError, if a function answers wrongly.
    """
    side = 64 if quick else 1024
    repeats = 1 if quick else 25
    source = data.make("random", (side, side))
    target = np.zeros_like(source)
    memcpy = _time("memcpy", lambda: ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes),
                   source.nbytes, repeats)
    return [memcpy, *_copies(source, repeats, memcpy.median), _checksum(source, repeats, memcpy.median),
            _header(10 if quick else 10**6, repeats)]


def _copies(source, repeats, memcpy):
    simplify = function("strided.copy", "copy_simplify", "void (struct Copy *)", None, ctypes.POINTER(Copy))
    run = function("strided.copy", "copy_run", "void (struct Copy const *, char const *, char *)", None,
                   ctypes.POINTER(Copy), ctypes.c_void_p, ctypes.c_void_p)
    side = source.shape[0]
    wide = np.zeros((side, 4 * side), source.dtype)
    double = np.zeros((2 * side, 2 * side), source.dtype)
    cases = (
        ("copy, contiguous", source, np.zeros_like(source), 0),
        ("copy, rows into a wider array", source, wide[:, side:2 * side], 0),
        ("copy, transposed", source.T, np.zeros_like(source), 0),
        ("copy, every second element of both axes", double[::2, ::2], np.zeros_like(source), 0),
        ("copy, rows reversed", source[::-1], np.zeros_like(source), 0),
        ("copy, bytes swapped", source, np.zeros_like(source), 4),
    )
    double[::2, ::2] = source
    for name, src, dst, swap in cases:
        spec = Copy(ndim=src.ndim, itemsize=src.itemsize, swap=swap)
        spec.shape[:src.ndim], spec.src_strides[:src.ndim] = src.shape, src.strides
        spec.dst_strides[:src.ndim] = dst.strides
        simplify(spec)
        run(spec, src.ctypes.data, dst.ctypes.data)
        if not data.same(np.ascontiguousarray(dst), np.ascontiguousarray(src.byteswap() if swap else src)):
            raise RuntimeError(f"{name}: the copy differs from its source")
        yield _time(name, lambda spec=spec, src=src, dst=dst: run(spec, src.ctypes.data, dst.ctypes.data),
                    src.nbytes, repeats, memcpy)


def _checksum(source, repeats, memcpy):
    crc32c = function("codec.checksums", "crc32c_of", "uint32_t (uint8_t const *, int64_t, uint32_t)", ctypes.c_uint32,
                      ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32)
    if crc32c(b"123456789", 9, 0) != 0xE3069283:  # the check value of CRC-32C
        raise RuntimeError("crc32c: wrong sum")
    return _time("crc32c", lambda: crc32c(source.ctypes.data, source.nbytes, 0), source.nbytes, repeats, memcpy)


def _header(count, repeats):
    import blosc

    check = function("codec.blosc_header", "check_header",
                     "int (uint8_t const *, int64_t, int64_t, int64_t, struct BloscHeader *, struct Status *)",
                     ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
                     ctypes.c_void_p)
    chunk = blosc.compress(bytes(4096), 4, 5, 1, "lz4")
    header, status = ctypes.create_string_buffer(16), ctypes.create_string_buffer(256)
    pointer = ctypes.cast(check, ctypes.c_void_p)
    repeat = native.library().repeat_check_header
    if repeat(pointer, chunk, len(chunk), 4096, 4, header, status, 1) != 0 or header.raw != chunk[:16]:
        raise RuntimeError("check_header: a good header is refused")
    timing = _time("blosc header check", lambda: repeat(pointer, chunk, len(chunk), 4096, 4, header, status, count),
                   0, repeats)
    return Timing(timing.name, timing.minimum / count, timing.median / count, 0)


def render(timings):
    """Return the timings as a Markdown table."""
    lines = ["| function | median (minimum) | GB/s | time / memcpy |", "| --- | ---: | ---: | ---: |"]
    for timing in timings:
        scale, unit = (1e9, "ns") if timing.median < 1e-6 else (1e6, "µs")
        rate = f"{timing.nbytes / timing.median / 1e9:.1f}" if timing.nbytes else "–"
        ratio = f"{timing.median / timing.memcpy:.2f}" if timing.memcpy else "–"
        lines.append(f"| {timing.name} | {timing.median * scale:.1f} {unit} ({timing.minimum * scale:.1f}) "
                     f"| {rate} | {ratio} |")
    return "\n".join(lines) + "\n"
