"""Write real data in every format zcore has, read them back, check every bit, and draw them.

Without PATH the data are the digital elevation model that matplotlib ships. What is written lies below one folder
afterwards, to be looked at; nothing there is replaced that an earlier run did not make.
"""
import os
import sys
import time

import numpy as np

import zcore
from zcore.cli.output import Output
from zcore.cli.source import load

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS = (
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)

PICTURE = "zcore-demo.png"
SLAB_NBYTES = 2**26            # more than this is written and read in several calls
SHORT_NBYTES = 2**26           # up to this a measurement is repeated
N_REPEATS = 3


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", metavar="PATH",
                        help="your own data: .npy, .npz, or an image (default: matplotlib's elevation model)")
    parser.add_argument("--array", metavar="NAME", help="array of an .npz file (default: the first)")
    parser.add_argument("--chunks", default="auto", metavar="CHUNKS",
                        help="elements per dimension such as 100,100, a size such as '64 KiB', or auto (the default): "
                             "1 MiB, less where that would make fewer than 8 chunks")
    parser.add_argument("--out", default="zcore-demo", metavar="DIR", help="folder for what is written "
                                                                         "(default: %(default)s)")
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}")


def run(arguments):
    """Run the demo; returns 0, or 1 when something came back different."""
    source = load(arguments.path, arguments.array)
    data = source.data
    if not arguments.no_picture:
        # Asked for now: who lacks it should not learn so after a long write.
        from zcore.cli.picture import draw
    stem = os.path.splitext(source.name)[0]
    output = Output(arguments.out, [stem + ending for _, ending, _ in FORMATS] + [PICTURE] * (not arguments.no_picture))
    chunks = _chunks(arguments.chunks, data.nbytes)

    rows, failures, array = [], [], None
    for name, ending, keywords in FORMATS:
        path = output.path(stem + ending)
        array = zcore.create_array(path, shape=data.shape, dtype=data.dtype, chunks=chunks, overwrite=True, **keywords)
        if not rows:
            _print_source(source, array.chunks)
        write_time = _write(array, data, f"{name}: writing")
        array = zcore.open(path)
        read_time, wrong = _read(array, data, f"{name}: reading")
        windows = list(windows_of(data.shape, array.chunks))
        wrong += [f"[{window_text(window)}]" for window in windows if not _is_equal(array[window], data[window])]
        n_files, n_bytes = files_and_bytes(path)
        rows.append((
            name, str(n_files), f"{n_bytes:,}", f"{data.nbytes / n_bytes:.2f}", _duration(write_time),
            _rate(data.nbytes, write_time), _duration(read_time), _rate(data.nbytes, read_time),
            f"all, {len(windows)} windows" if not wrong else f"NOT {wrong[0]}",
        ))
        if wrong:
            failures.append(f"{path} differs from {source.name} at {', '.join(wrong)}")
    print(table(("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "equal"), rows))
    print(f"\nfiles in the system's cache, {_plural(zcore.config.threads, 'thread')}"
          f"{f', best of {N_REPEATS}' if data.nbytes <= SHORT_NBYTES else ''}")
    print(f"arrays  : {', '.join(output.path(stem + ending) for _, ending, _ in FORMATS)}")
    if not arguments.no_picture:
        picture = output.path(PICTURE)
        reason = draw(picture, array, source)
        print(f"picture : {picture}" if reason is None else f"no picture: {reason}")
    for failure in failures:
        print(f"zcore demo: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _chunks(text, nbytes):
    """Return the `chunks` of `create_array` that the option `text` stands for."""
    if text == "auto":
        return f"{max(1, min(2**20, nbytes // 8))} B"
    lengths = text.split(",")
    if all(length.strip().isdecimal() for length in lengths):
        return tuple(map(int, lengths))
    return text


# Writing, reading, comparing


def _slabs(shape, chunk_shape, row_nbytes):
    """Yield slices of the first dimension, whole rows of chunks each, of about `SLAB_NBYTES`."""
    if not shape:
        yield ...
        return
    n_rows = max(1, SLAB_NBYTES // max(1, row_nbytes * chunk_shape[0])) * chunk_shape[0]
    for start in range(0, shape[0], n_rows):
        yield slice(start, min(start + n_rows, shape[0]))


def _repeats(nbytes):
    return N_REPEATS if nbytes <= SHORT_NBYTES else 1


def _write(array, data, label):
    """Write all of `data`; returns the seconds it took."""
    best = None
    for _ in range(_repeats(data.nbytes)):
        taken = 0.0
        for slab in _with_progress(label, _slabs(data.shape, array.chunks, _row_nbytes(data)), data.shape):
            values = np.ascontiguousarray(data[slab])
            start = time.perf_counter()
            array[slab] = values
            taken += time.perf_counter() - start
        best = taken if best is None else min(best, taken)
    return best


def _read(array, data, label):
    """Read everything; returns the seconds it took, and the places that differ from `data`."""
    best, wrong = None, []
    for _ in range(_repeats(data.nbytes)):
        taken, wrong = 0.0, []
        for slab in _with_progress(label, _slabs(data.shape, array.chunks, _row_nbytes(data)), data.shape):
            start = time.perf_counter()
            found = array[slab]
            taken += time.perf_counter() - start
            if not _is_equal(found, data[slab]):
                wrong.append(f"[{window_text(slab)}]")
        best = taken if best is None else min(best, taken)
    return best, wrong


def _row_nbytes(data):
    return data.nbytes // max(1, data.shape[0]) if data.shape else data.nbytes


def _is_equal(found, expected):
    """Return whether two arrays have the same type, shape and bits: NaN is equal to itself, -0.0 is not 0.0."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.names is not None:
        # Field by field: what lies between them is nobody's data, and NumPy's own copies leave it out.
        return all(_is_equal(found[name], expected[name]) for name in found.dtype.names)
    return np.array_equal(_bytes_of(found), _bytes_of(expected))


def _bytes_of(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def windows_of(shape, chunk_shape):
    """Yield selections that a read in part has to get right: elements, lines, boxes across chunk borders, steps.

    No window is larger than about three chunks in each dimension, whatever the size of the array.

    >>> [window_text(window) for window in windows_of((100,), (40,))]
    ['50', '0:1', '99:100', '0:100', '99::-1', '1:100:2', '98::-3', '60:100']
    """
    if 0 in shape:
        yield (slice(None),) * len(shape)
        yield (slice(None, None, -1),) * len(shape)
        return
    middle, first, last, region, downwards, steps, back, across = [], [], [], [], [], [], [], []
    for length, chunk in zip(shape, chunk_shape, strict=True):
        centre = length // 2
        low, high = max(0, centre - 3 * chunk // 2), min(length, centre + 3 * chunk // 2 + 1)
        middle.append(centre)
        first.append(slice(0, 1))
        last.append(slice(length - 1, length))
        region.append(slice(low, high))
        downwards.append(_downwards(high - 1, low, 1))
        steps.append(slice(min(low + 1, high - 1), high, 2))
        back.append(_downwards(max(high - 2, low), low, 3))
        border = min(max(1, -(-centre // chunk)) * chunk, length) if chunk < length else length
        half = max(1, chunk // 2)
        across.append(slice(max(0, border - half), min(length, border + half)))
    for window in (middle, first, last, region, downwards, steps, back, across):
        yield tuple(window)


def _downwards(high, low, step):
    return slice(high, low - 1 if low else None, -step)


def window_text(window):
    """Return a selection as it is typed between brackets."""
    parts = []
    for part in window if isinstance(window, tuple) else (window,):
        if isinstance(part, slice):
            start, stop, step = ("" if n is None else str(n) for n in (part.start, part.stop, part.step))
            part = f"{start}:{stop}" + (f":{step}" if step else "")
        parts.append("..." if part is ... else str(part))
    return ", ".join(parts)


def _with_progress(label, slabs, shape):
    """Yield the slabs; on a terminal say how far it is, if there is more than one."""
    if not sys.stderr.isatty():
        yield from slabs
        return
    shown = ""
    for slab in slabs:
        yield slab
        if slab is not ... and slab.stop < shape[0]:
            shown = f"{label} {100 * slab.stop // shape[0]} %"
            print(f"\r{shown}", end="", file=sys.stderr, flush=True)
    if shown:
        print(f"\r{' ' * len(shown)}\r", end="", file=sys.stderr, flush=True)


# What is printed


def _print_source(source, chunk_shape):
    data = source.data
    n_chunks = 1
    for length, chunk in zip(data.shape, chunk_shape, strict=True):
        n_chunks *= -(-length // chunk)
    print(f"zcore {zcore.__version__}: {source.title}\n"
          f"{' x '.join(map(str, data.shape))} {data.dtype}, {data.nbytes:,} bytes, in {_plural(n_chunks, 'chunk')} of "
          f"{' x '.join(map(str, chunk_shape))}\n")


def files_and_bytes(path):
    """Return the number of files at `path`, a file or directory, and their bytes."""
    if os.path.isfile(path):
        return 1, os.path.getsize(path)
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return len(sizes), sum(sizes)


def table(header, rows):
    """Return rows of text as lines, the first and last column to the left and the others to the right.

    >>> print(table(("format", "files", "equal"), [("a", "12", "all")]))
    format  files  equal
    a          12  all
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    last = len(header) - 1
    return "\n".join(
        "  ".join(cell.ljust(width) if i in (0, last) else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in (header, *rows))


def _duration(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def _rate(nbytes, seconds):
    return f"{nbytes / max(seconds, 1e-9) / 1e6:,.0f}"


def _plural(n, word):
    return f"{n} {word}{'' if n == 1 else 's'}"
