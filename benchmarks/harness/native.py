"""The harness's own C code (`bare_loop.c`), compiled at first use and called through ctypes.

It links the `libblosc.a` of the installed `blosc` distribution, the archive that zcore links too: both decode with
the same machine code.
"""
import ctypes
import functools
import hashlib
import importlib.metadata
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("bare_loop.c")
_FLAGS = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-fvisibility=default", "-pthread"]
_FAILURES = {-1: "a bad argument", -2: "open", -3: "read", -4: "a chunk header", -5: "decode", -6: "memory",
             -7: "encode", -8: "write", -9: "rename", -10: "thread creation"}

_int64_p = ctypes.POINTER(ctypes.c_int64)
_WHOLE_ARRAY = [ctypes.c_char_p, ctypes.c_int, _int64_p, _int64_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int]


def _blosc_files():
    """Return the paths of blosc.h and libblosc.a; ImportError where the distribution does not have them."""
    try:
        files = importlib.metadata.files("blosc") or ()
    except importlib.metadata.PackageNotFoundError as exc:
        raise ImportError("the distribution blosc is not installed") from exc
    found = {file.name: Path(file.locate()).resolve() for file in files if file.name in ("blosc.h", "libblosc.a")}
    if len(found) != 2:
        raise ImportError("the installed blosc has no blosc.h and libblosc.a")
    return found["blosc.h"], found["libblosc.a"]


def _build_directory():
    beside = _SOURCE.parents[2] / "build" / "benchmarks"
    try:
        beside.mkdir(parents=True, exist_ok=True)
        if os.access(beside, os.W_OK):
            return beside
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="zcore-benchmarks-"))


def compiled(source, flags=(), libraries=()):
    """Compile a file of C to a shared library, if it, the flags or blosc have changed; return the library's path.

    Parameters
    ----------
    source : Path
    flags, libraries : sequence of str
        Besides what every source gets; `libraries` stand behind the source.

    Raises : ImportError, if there is no C compiler (``CC``, else ``cc``), no blosc, or the compilation fails.
    """
    header, archive = _blosc_files()
    compiler = shlex.split(os.environ.get("CC", "cc"))
    hide = [] if sys.platform == "darwin" else ["-Wl,--exclude-libs,ALL"]
    command = [*compiler, *_FLAGS, f"-I{header.parent}", *flags, str(source), str(archive), *hide, *libraries]
    known = hashlib.sha256()
    for part in (source.read_bytes(), " ".join(command).encode(), str(archive.stat().st_mtime_ns).encode()):
        known.update(part)
    target = _build_directory() / f"{source.stem}-{known.hexdigest()[:16]}.so"
    if not target.exists():
        temporary = target.with_suffix(f".{os.getpid()}")
        try:
            done = subprocess.run([*command, "-o", str(temporary)], capture_output=True, text=True, check=False)
        except OSError as exc:
            raise ImportError(f"no C compiler: {exc}") from exc
        if done.returncode:
            raise ImportError(f"{source.name} does not compile: {done.stderr.strip()[-500:]}")
        os.replace(temporary, target)
    return str(target)


@functools.cache
def library():
    """Return `bare_loop.c`, loaded; ImportError as `compiled`."""
    target = compiled(_SOURCE)
    loaded = ctypes.CDLL(str(target))
    for name in ("read_array", "write_array"):
        getattr(loaded, name).argtypes = _WHOLE_ARRAY
    loaded.read_lists.argtypes = [
        ctypes.c_char_p, ctypes.c_int, _int64_p, _int64_p, ctypes.POINTER(_int64_p), _int64_p, ctypes.c_int,
        ctypes.c_void_p, ctypes.c_int]
    loaded.spin_threads.argtypes = [ctypes.c_int, ctypes.c_int64]
    loaded.repeat_check_header.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_int64]
    return loaded


def whole_array(function, path, chunks, array, threads):
    """Read into, or write from, the C-contiguous `array` all chunk files ``c/i/j`` of the directory `path`.

    Raises : OSError, if the C loop reports a failure.
    """
    numbers = ctypes.c_int64 * array.ndim
    _check(function(os.fsencode(path), array.ndim, numbers(*array.shape), numbers(*chunks), array.itemsize,
                    array.ctypes.data, threads))


def selected(path, shape, chunks, lists, are_points, out, threads):
    """Read elements of the array of float32 in the directory `path` into the C-contiguous `out`.

    Of `lists`, vectors of int64 for each dimension, the product, or element by element where they `are_points`.
    Raises : OSError, if the C loop reports a failure.
    """
    numbers = ctypes.c_int64 * len(shape)
    pointers = (_int64_p * len(shape))(*[vector.ctypes.data_as(_int64_p) for vector in lists])
    _check(library().read_lists(os.fsencode(path), len(shape), numbers(*shape), numbers(*chunks), pointers,
                                numbers(*map(len, lists)), are_points, out.ctypes.data, threads))


def _check(code):
    if code:
        raise OSError(f"the bare loop failed at {_FAILURES.get(code, code)}")
