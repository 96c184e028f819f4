"""Measure how fast an array is read and written here, and which forms would be faster.

A sample is read from the store, with one thread and with several. It is then written and read in its own form and in
others, in a hidden folder beside the store, which is removed again. Times are of files in the system's cache,
the best of three.

Examples:
  zcore bench data.zarr/2016/t2m
  zcore bench data.zarr/2016/t2m --sample "256 MB" --threads 1,2,8
  zcore bench archive.zip/t2m --folder /scratch
"""
from __future__ import annotations

import os

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.printed import ProgressLine, duration, megabytes_per_second, nbytes_text, plural, table

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("--sample", default="64 MB", metavar="SIZE", help="decoded bytes to read and write "
                                                                          "(default: %(default)s)")
    parser.add_argument("--threads", metavar="NUMBERS", help="threads to read with, such as 1,2,8 (default: 1 and one "
                                                             "for each CPU)")
    parser.add_argument("--no-write", action="store_true", help="write nothing: measure only reading")
    parser.add_argument("--folder", metavar="DIR", help="where to write (default: beside the store)")
    machine.add_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure."""
    from tempfile import TemporaryDirectory

    from zcore.cli.verbs.speed.measured import Sample, advice_of, measure_forms
    from zcore.text.sizes import parse_nbytes

    try:
        nbytes = parse_nbytes(arguments.sample)
    except ValueError as exc:
        raise ValueError(f"--sample: {exc}") from None
    threads = sorted({1, zcore.config.threads}) if arguments.threads is None else _numbers(arguments.threads)
    array = location.opened_array(arguments.path)
    folder = None if arguments.no_write else _folder(arguments.folder, array.store)
    sample = Sample(array, nbytes)
    with ProgressLine(f"measuring {arguments.path}") as progress:
        read_seconds = {n: sample.read(n) for n in threads}
        fetch_seconds, element_seconds, forms = sample.fetch(), sample.element(), []
        if folder is not None:
            with TemporaryDirectory(prefix=".zcore-bench-", dir=folder) as made:
                forms = measure_forms(sample, made, progress)
    advice = list(advice_of(arguments.path, sample, forms))
    if arguments.json:
        machine.show({
            "path": arguments.path, "nbytes": sample.nbytes, "nbytes_stored": sample.nbytes_stored,
            "objects": sample.n_objects, "absent": sample.n_absent, "fetch_seconds": fetch_seconds,
            "element_seconds": element_seconds,
            "read": [{"threads": n, "seconds": seconds} for n, seconds in read_seconds.items()], "forms": forms,
            "advice": advice})
    else:
        _print(sample, read_seconds, fetch_seconds, element_seconds, forms, advice)
    return 0


def _numbers(text):
    try:
        numbers = sorted({int(number) for number in text.split(",")})
        if numbers[0] < 1:
            raise ValueError
    except ValueError:
        raise ValueError(f"--threads: expected numbers of at least 1 such as 1,2,8, found {text!r}") from None
    return numbers


def _folder(given, store):
    """Return where to write: beside the store, if it is a directory."""
    if given == "":
        raise ValueError("--folder: expected the name of a folder, found an empty text")
    if given is not None:
        return given
    from zcore.stores.base import directory_at

    directory = directory_at(store)
    if directory is None:
        raise ValueError("the store is not a directory, so there is no folder beside it: name a --folder, or "
                         "measure only reading by --no-write")
    return os.path.dirname(os.path.abspath(directory))


def _print(sample, read_seconds, fetch_seconds, element_seconds, forms, advice):
    speed = megabytes_per_second
    print(f"sample: {nbytes_text(sample.nbytes)} in {plural(sample.n_objects, 'object')} of "
          f"{nbytes_text(sample.nbytes_stored)} in total; all in the system's cache"
          f"{f'; {sample.n_absent} more are absent' if sample.n_absent else ''}")
    print(f"bytes alone       {duration(fetch_seconds):>9}  {speed(sample.nbytes_stored, fetch_seconds):>6} MB/s, as "
          "they are stored")
    for n, seconds in read_seconds.items():
        print(f"{'read, ' + plural(n, 'thread'):17} {duration(seconds):>9}"
              f"  {speed(sample.nbytes, seconds):>6} MB/s, "
              f"{duration(seconds / (sample.n_objects + sample.n_absent))} an object")
    print(f"one element       {duration(element_seconds):>9}")
    if forms:
        print()
        print(table(("form", "files", "bytes", "ratio", "write MB/s", "read MB/s", "one chunk"), [
            (row["name"], str(row["objects"]), f"{row['nbytes_stored']:,}",
             f"{sample.nbytes / max(1, row['nbytes_stored']):.2f}", speed(sample.nbytes, row["write_seconds"]),
             speed(sample.nbytes, row["read_seconds"]), duration(row["chunk_seconds"])) for row in forms]))
    print()
    for sentence in advice or ["no other form is clearly better"]:
        print(f"- {sentence}")
