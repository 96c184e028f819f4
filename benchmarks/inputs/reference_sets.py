"""Reference sets made without any library under test: an array whose chunks lie in one file, and sets to be opened.

The sets to be opened are of version 1, with one URL.
"""
import json
import os
from pathlib import Path

NAME = "refs.json"
URL = "s3://bucket/forecasts/2026/temperature.nc"
LENGTH = 16384
ROW = 1000  # references of a row of chunks


def write(root, document, chunks):
    """Make the new directory `root` of a Zarr v2 array of this document: a set, and a file with all chunks.

    `chunks` gives pairs of a key and bytes. Returns the bytes of all chunks.
    """
    Path(root).mkdir(parents=True)
    # fsspec takes relative URLs to start from the directory of the process.
    target = os.path.abspath(os.path.join(root, "chunks.bin"))
    references, at = {".zarray": document}, 0
    with open(target, "wb") as file:
        for key, encoded in chunks:
            references[key] = [target, at, len(encoded)]
            at += file.write(encoded)
    Path(root, NAME).write_text(json.dumps({"version": 1, "refs": references}), "utf-8")
    return at


def expected(count):
    """Return what a set says, key to text or [url, offset, length]: a group and `count` chunks of one file."""
    references = {".zgroup": '{"zarr_format": 2}'}
    for i in range(count):
        references[f"temperature/{i // ROW}.{i % ROW}"] = [URL, i * LENGTH, LENGTH]
    return references


def write_set(path, count):
    """Write a set that says so."""
    Path(path).write_text(json.dumps({"version": 1, "refs": expected(count)}), "utf-8")
