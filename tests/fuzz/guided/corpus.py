"""The inputs that are kept of each target: one zip archive each, its members named by their content.

Members whose names begin with ``found-`` once showed a mistake. They stay, whatever they cover.
"""
import hashlib
import re
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "corpus"
MAX_NBYTES = 60_000        # of the inputs of a target
FOUND = "found-"


def inputs_of(target):
    """Return the inputs of a target, a dict of name to bytes."""
    path = FOLDER / f"{target}.zip"
    if not path.exists():
        return {}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def name_of(data):
    return hashlib.sha256(data).hexdigest()[:16]


def keep(target, inputs):
    """Replace the inputs of a target by these, the short ones first, and by those that have once shown a mistake."""
    kept = {name: data for name, data in inputs_of(target).items() if name.startswith(FOUND)}
    n_bytes = 0
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        n_bytes += len(data)
        if n_bytes <= MAX_NBYTES:
            kept[name_of(data)] = data
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(FOLDER / f"{target}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(kept.items()):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def shortened(data):
    """Return bytes in the run-length form of the targets of megabytes.

    >>> shortened(b"ab" + bytes(9)).hex()
    '01616283008000'
    """
    short, at = b"", 0
    for run in re.finditer(rb"(?s)(.)\1{7,}", data):
        short += _literal(data[at:run.start()])
        short += b"".join([bytes([128 + k]) + run[1] for k in reversed(range(25)) if len(run[0]) >> k & 1])
        at = run.end()
    return short + _literal(data[at:])


def _literal(data):
    return b"".join([bytes([len(part) - 1]) + part for part in [data[i:i + 128] for i in range(0, len(data), 128)]])
