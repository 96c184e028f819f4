"""All of zcore's long tests, on your own machine and your own file system: `python -m tests.campaign --hours 1`.

The runner divides its time between the parts, shows what each is doing, and prints a table: what was tried, how often,
with which command, and what came out. `--list` names the parts, `--parts` chooses some, `--directory` is a folder of
the file system to try.

A part is one entry of `parts.PARTS`: a name, a sentence, and a command. The command is run in the project's folder,
with `--seconds S` appended, in an environment where

- `ZCORE_TEST_DIRECTORY` is an empty folder of the part's own, in which all its files are;
- `TMPDIR` is the same folder.

The command works for about S seconds, and prints whatever shows its progress. Its last line on the standard output is a
JSON object:

    {"part": "kills", "tried": 1200, "unit": "kills", "found": 0, "seconds": 58.1}

`tried` counts what `unit` names, and `found` the failures. `"skipped": "why"` may be added where the machine lacks what
the part needs. The command exits with 0, or with 1 if it found something. Anything else is a crash of the part, and is
shown as one: another status, a signal, no such line, nothing tried, 15 minutes more than S.

Tests of pytest become a part by `nodes.py`:

    Part("kills", "…", (*NODES, "--unit", "kills", "tests/crash/test_kill.py"))

It runs the tests, the slow ones too, one after the other until the time is over. A test that counts prints a line
`{"tried": 200}`, which `counted(200)` does; of a test that prints none, the test itself is counted. `found` is the
number of tests that failed. `ZCORE_TEST_ROUND` is the number of the round, from 0: a seed for tests that want another
one each time.
"""
import json
import os


def counted(n):
    """Print how often a test has tried something, for `nodes.py`."""
    print(json.dumps({"tried": n}), flush=True)


def round_number():
    """Return the number of the round, a seed for tests; 0 in an ordinary run."""
    return int(os.environ.get("ZCORE_TEST_ROUND", 0))
