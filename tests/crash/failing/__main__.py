"""The failing calls as a part of the campaign: `python -m tests.crash.failing --seconds 600`.

Each verb is called with each kind of failure, in an order that is drawn by lot, until the time is over or all are done.
`--verbs` takes a regular expression, `--kinds` names of `KINDS`.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.failing.verbs import VERBS

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# A name, what `rounds.py` is told, and how zcore locks.
KINDS = {
    **{error: ("CALLS", error, "on") for error in ("EIO", "ENOSPC", "EDQUOT", "EACCES", "ESTALE", "EMFILE")},
    "EIO with lock files": ("CALLS", "EIO", "file"),
    "the disk is full": ("FULL", "ENOSPC", "on"),
    "the disk is gone": ("GONE", "EIO", "on"),
    "interrupted": ("SIGNAL", "EINTR", "on"),
    "interrupted with lock files": ("SIGNAL", "EINTR", "file"),
    "one short": ("HALF", "", "on"),
    "all short": ("SHORT", "", "on"),
    "no memory": ("MEMORY", "ENOMEM", "on"),
}
_BATCH = 8     # verbs in one process


class NoLibrary(Exception):
    """The library cannot be made here."""


def build(folder):
    """Compile the library and return its path. Raises : NoLibrary."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise NoLibrary("needs Linux and a C compiler")
    path = Path(folder, "failing.so")
    done = subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, HERE / "failing.c", "-ldl"],
                          capture_output=True, text=True)
    if done.returncode:
        raise NoLibrary(f"the C compiler does not make the library: {done.stderr[-200:]}")
    return path


def run(library, folder, units, lock="on", threads=1, end=None):
    """Run units (verb, kind, error) in a process of its own.

    Yields
    ------
    name : str
        Of the verb.
    n : int
        How many calls failed.
    found : list of str
        What came that should not have; a crash of the process is one.
    """
    environment = {**os.environ, "LD_PRELOAD": str(library), "ZCORE_LOCK": lock, "ZCORE_NUM_THREADS": str(threads),
                   "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.crash.failing.rounds", library, folder, json.dumps(units)],
            stdout=subprocess.PIPE, stderr=told, text=True, env=environment)
        try:
            n_done = 0
            for line in process.stdout:
                name, _, _, n, found = json.loads(line)
                n_done += 1
                yield name, n, found
                if end is not None and time.monotonic() > end:
                    return
            if process.wait() or n_done < len(units):
                told.seek(0)
                name = units[n_done][0] if n_done < len(units) else "the end"
                yield name, 0, [f"{name}: the process ended with {process.returncode}: {told.read()[-2000:]}"]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.crash.failing", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--verbs", default="", help="a regular expression")
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, separated by commas")
    given = parser.parse_args()
    start = time.monotonic()
    names = [name for name in VERBS if re.search(given.verbs, name)]
    todo = []
    for kind in given.kinds.split(","):
        random.shuffle(names)
        todo += [(kind, names[i:i + _BATCH]) for i in range(0, len(names), _BATCH)]
    random.shuffle(todo)
    n_pairs, n_done = sum(len(batch) for _, batch in todo), 0
    result = {"part": "failing calls", "tried": 0, "unit": "failures", "found": 0, "seconds": 0}
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZCORE_TEST_DIRECTORY")) as folder:
        try:
            library = build(folder)
        except NoLibrary as exc:
            result["skipped"] = str(exc)
            todo = []
        for kind, batch in todo:
            what, error, lock = KINDS[kind]
            place = tempfile.mkdtemp(dir=folder)
            units = [(name, what, error) for name in batch]
            for name, n, found in run(library, place, units, lock, random.choice((1, 4)), start + given.seconds):
                print(f"{name}, {kind}: {n} failures", *found, sep="\n  ", flush=True)
                n_done += 1
                result["tried"] += n
                result["found"] += len(found)
            shutil.rmtree(place)
            if time.monotonic() - start > given.seconds:
                break
    if todo and n_done < n_pairs:
        result["skipped"] = f"{n_pairs - n_done} of {n_pairs} pairs of verb and failure: no time was left"
    result["seconds"] = round(time.monotonic() - start, 1)
    print(json.dumps(result))
    return int(result["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
