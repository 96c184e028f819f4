"""Checkpoints of fields by the ranks of an MPI program: arrays written by `zcore.h`, beside parallel HDF5.

Both take turns in a random order in one program, `checkpoint.c`, and what zcore wrote is read back and compared. It
takes an MPI and the parallel library of HDF5 (``pkg-config hdf5-openmpi`` or ``hdf5-mpich``).
"""
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
# `seconds`: {who: [of one checkpoint]}.
Row = namedtuple("Row", ("n_ranks", "shift", "creates", "codec", "seconds"))
_CODECS = {"none": '{"compressors": null, "overwrite": true}', "lz4": '{"overwrite": true}'}


def program(folder):
    """Compile the program into a folder, and return its path.

    Raises : ImportError, if there is no compiler for MPI, no parallel HDF5, or the compilation fails.
    """
    for name in ("hdf5-openmpi", "hdf5-mpich"):
        try:
            found = subprocess.run(["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True,
                                   check=False)
        except OSError as exc:
            raise ImportError(f"no pkg-config: {exc}") from exc
        if found.returncode == 0:
            break
    else:
        raise ImportError("no parallel HDF5: pkg-config knows neither hdf5-openmpi nor hdf5-mpich")
    path = os.path.join(folder, "checkpoint")
    flags, libraries = [shlex.split(subprocess.run([sys.executable, "-m", "zcore.embed", option], check=True,
                                                   capture_output=True, text=True).stdout)
                        for option in ("--cflags", "--libs")]
    command = ["mpicc", "-O2", "-std=c11", *flags, str(_SOURCE), "-o", path, *libraries, *shlex.split(found.stdout),
               "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as exc:
        raise ImportError(f"no mpicc: {exc}") from exc
    if done.returncode:
        raise ImportError(f"{_SOURCE.name} does not compile: {done.stderr.strip()[-500:]}")
    return path


def measure(ranks=(2, 4), repeats=9, n_fields=8, n_rows=4096, n_columns=2048, chunk_rows=128):
    """Return a list of `Row`, for each number of ranks; rows that are 3 too few for whole chunks are the second ones.

    Raises : ValueError, if an element that was read back is wrong.
    """
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top:
        path = program(top)
        environment = {**os.environ, "ZCORE_PYTHON": sys.executable}
        for n_ranks in ranks:
            for shift, creates, codec in ((0, 0, "none"), (3, 0, "none"), (0, 1, "none"), (0, 1, "lz4")):
                with tempfile.TemporaryDirectory(dir=top) as folder:
                    numbers = (n_fields, n_rows, n_columns, chunk_rows, repeats, shift)
                    command = ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else []),
                               "-n", str(n_ranks), path, folder, *map(str, numbers), _CODECS[codec], str(creates)]
                    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
                seconds = {"zcore": [], "HDF5": []}
                for line in text.splitlines():
                    who, number = line.split()
                    if who in seconds:
                        seconds[who].append(float(number))
                    elif int(number):
                        raise ValueError(f"{number} elements are wrong")
                rows.append(Row(n_ranks, shift, creates, codec, seconds))
    return rows


def render(rows):
    """Return the rows as Markdown: milliseconds of a checkpoint, the median and (the minimum)."""
    lines = ["| ranks | rows | files | codec of zcore | zcore, ms | parallel HDF5, ms | times zcore's |",
             "|---:|---|---|---|---:|---:|---:|"]
    for row in rows:
        own, theirs = (row.seconds[who] for who in ("zcore", "HDF5"))
        cells = [f"{statistics.median(times) * 1e3:.0f} ({min(times) * 1e3:.0f})" for times in (own, theirs)]
        ratio = statistics.median(theirs) / statistics.median(own)
        lines.append(f"| {row.n_ranks} | {'misaligned' if row.shift else 'aligned'} | "
                     f"{'new' if row.creates else 'replaced'} | {row.codec} | {cells[0]} | {cells[1]} | {ratio:.2f} |")
    return "\n".join(lines)
