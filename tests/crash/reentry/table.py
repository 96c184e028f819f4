"""The matrix of contexts and calls, and the processes in which it is tried."""
import json
import os
import subprocess
import sys
import tempfile
from random import Random

from tests.crash.races import verbs
from tests.crash.reentry import at_exit
from tests.crash.reentry.child import STORES
from tests.crash.reentry.contexts import ASSIGNING, CONTEXTS

# The calls of each format: that of 2016 has no groups.
CALLS_OF = {format: (*verbs.verbs(format), *verbs.OF_ASDF) for format in verbs.FORMATS}
KINDS = tuple(at_exit.KINDS)
# A process that is not done by then hangs, though each of its attempts has a limit of its own.
MAX_SECONDS = 600


def run(module, *arguments):
    """Run a module of this package, and return (attempts, what was wrong); a hang is wrong."""
    command = [sys.executable, "-m", f"tests.crash.reentry.{module}", *map(str, arguments)]
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    try:
        # What a process that was ended leaves goes, too.
        with tempfile.TemporaryDirectory(prefix="zcore-reentry-", dir=in_memory) as folder:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS, env=dict(
                os.environ, PYTHONPATH=os.pathsep.join(sys.path), ZCORE_TEST_FOLDER=folder))
    except subprocess.TimeoutExpired:
        return 1, [f"{' '.join(command)} hangs"]
    if done.returncode or not done.stdout:
        return 1, [f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-3000:]}"]
    n_tried, found = json.loads(done.stdout.splitlines()[-1])
    return n_tried, found


def cells(seed):
    """Yield (attempts, what was wrong) of every row of the matrix, whose cells are tried once each."""
    for format, inners in CALLS_OF.items():
        rows = [("child", context, store, format, seed, 1, outer) for context in CONTEXTS
                for store in stores_of(context) for outer in outers_of(context, format)]
        for row in [*rows, *[("at_exit", kind, format) for kind in KINDS]]:
            n_tried, found = run(*row, *inners)
            if n_tried != len(inners) and not found:
                found = [f"{row}: {n_tried} cells were tried, expected {len(inners)}"]
            yield n_tried, found


def outers_of(context, format):
    """Return the calls within which others are made."""
    return ASSIGNING if context == "__array__" else CALLS_OF[format]


def stores_of(context):
    """Return the kinds of stores that a context is tried with: a forked child has a copy of a store in memory."""
    return STORES[:2] if context == "fork" else STORES


def steps(deadline_of, seed):
    """Yield (attempts, what was wrong) of one part of the matrix after the other, in a random order."""
    rng = Random(seed)
    while deadline_of():
        kind, format = rng.choice((*CONTEXTS, *CONTEXTS, "exit")), rng.choice(verbs.FORMATS)
        inners = CALLS_OF[format]
        if kind == "exit":
            yield run("at_exit", rng.choice(KINDS), format, *inners)
        else:
            yield run("child", kind, rng.choice(stores_of(kind)), format, rng.randrange(1 << 30), 3,
                      rng.choice(outers_of(kind, format)), *inners)
