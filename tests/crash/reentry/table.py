"""The matrix of contexts and calls, and the processes in which it is tried."""
import json
import os
import subprocess
import sys
import tempfile
from random import Random

from tests.crash.races.model import PROGRAMS
from tests.crash.reentry import at_exit
from tests.crash.reentry.child import STORES
from tests.crash.reentry.contexts import CONTEXTS

CALLS = tuple(PROGRAMS)
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


def steps(deadline_of, seed):
    """Yield (attempts, what was wrong) of one part of the matrix after the other, in a random order."""
    rng = Random(seed)
    while deadline_of():
        kind = rng.choice((*CONTEXTS, *CONTEXTS, "exit"))
        if kind == "exit":
            yield run("at_exit", rng.choice(KINDS), *CALLS)
        else:
            stores = STORES[:2] if kind == "fork" else STORES
            yield run("child", kind, rng.choice(stores), rng.randrange(1 << 30), 3, rng.choice(CALLS), *CALLS)
