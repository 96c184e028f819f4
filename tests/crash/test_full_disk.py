"""A disk that is full at any page: the old state or the new one, and the same call succeeds when there is room."""
import json

import pytest

from tests.campaign import counted
from tests.full_disk import run_on_tmpfs

from .failing.verbs import VERBS

SCRIPT = """
import sys
from tests.crash.failing.full import main
main(leave_free, sys.argv[1:])
"""
QUICK = ["v3: merge", "v3: create with data", "zip: write", "asdf: append a block", "store: set parts"]
KINDS = sorted({name.partition(":")[0] for name in VERBS} - {"raw", "verify"})     # which write nothing


def check(names):
    done = run_on_tmpfs(SCRIPT, *names, kilobytes=4096, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    n_full, found = json.loads(done.stdout.splitlines()[-1])
    assert found == [] and n_full
    counted(n_full)


def test_a_full_disk_leaves_the_old_state_or_the_new_one():
    check(QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_in_every_verb(kind):
    check([name for name in VERBS if name.partition(":")[0] == kind])
