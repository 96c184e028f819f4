"""The runner of the long tests: what a part says is what the table shows, and nothing else is a pass."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.campaign import __main__ as campaign
from tests.campaign import nodes
from tests.campaign.parts import NODES, PARTS, Part

RESULT = {"part": "x", "tried": 5, "unit": "cases", "found": 0, "seconds": 1.0}


def outcome_of(tmp_path, code, seconds=5):
    part = Part("x", "cases", ("python", "-c", code))
    return campaign.run_part(part, seconds, tmp_path, tmp_path / "log")


def saying(status=0, **changed):
    return f"import sys; print('at work'); print('''{json.dumps(RESULT | changed)}'''); sys.exit({status})"


def test_a_part_that_finds_nothing_is_well(tmp_path):
    outcome = outcome_of(tmp_path, saying())
    assert outcome.is_well and outcome.often == "5 cases in 1 s" and outcome.outcome == "nothing"
    assert "at work" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("code, shown", [
    (saying(1, found=2), "FOUND 2"),
    (saying(0, found=2), "CRASHED: status 0"),
    (saying(1), "CRASHED: status 1"),
    (saying(0, tried=0), "CRASHED: nothing"),
    (saying() + " or print('later')", "CRASHED"),
    ("print(1)", "CRASHED: status 0"),
    ("print('{}')", "CRASHED: status 0"),
    ("", "CRASHED: status 0"),
    ("1/0", "CRASHED: status 1"),
    (f"{saying().rpartition(';')[0]}; sys.stdout.flush(); import os; os.kill(os.getpid(), 11)",
     "CRASHED: status -11"),
])
def test_a_part_that_finds_something_or_crashes_is_not_well(tmp_path, code, shown):
    outcome = outcome_of(tmp_path, code.replace("sys.exit(0) or print", "print"))
    assert not outcome.is_well and outcome.outcome.startswith(shown), outcome


def test_a_part_that_cannot_run_here_says_why(tmp_path):
    outcome = outcome_of(tmp_path, saying(tried=0, skipped="no compiler"))
    assert outcome.is_well and outcome.outcome == "skipped: no compiler"


def test_a_part_that_hangs_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "GRACE_SECONDS", 1)
    code = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    outcome = outcome_of(tmp_path, code, seconds=1)
    assert not outcome.is_well and outcome.outcome.startswith("HUNG")
    pid = int((tmp_path / "log").read_text())
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("it lives")


def test_an_interrupted_run_shows_the_rest_as_not_run(tmp_path):
    root = campaign.ROOT
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.campaign", "--hours", "0.1", "--parts", "kills,kills of copies",
         "--directory", tmp_path], cwd=root, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    lines = [process.stdout.readline() for _ in range(2)]
    assert lines[1].startswith("1 of 2, kills:"), lines
    log = Path(lines[0].split()[-1], "1.txt")
    while not log.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "| ? | `python -m tests.campaign.nodes" in rest and "INTERRUPTED" in rest and "NOT RUN" in rest
    assert rest.endswith("0 parts well, 2 not\n")


def outcome_of_test(tmp_path, code):
    (tmp_path / "test_made.py").write_text(code)
    return campaign.run_part(Part("x", "x", (*NODES, "--unit", "things", str(tmp_path / "test_made.py"))), 0, tmp_path,
                             tmp_path / "log")


def test_tests_of_pytest_count_what_they_print(tmp_path):
    outcome = outcome_of_test(tmp_path, """
import pytest
@pytest.mark.slow
def test_one():
    print('{"tried": 70}')
def test_two():
    assert False, "there is no time for this one"
""")
    assert outcome.is_well and outcome.often.startswith("70 things in "), outcome
    assert outcome.outcome == "nothing; skipped: 1 of 2 tests: no time was left"


@pytest.mark.parametrize("code, shown", [
    ("def test_one(): assert False", "FOUND 1"),
    pytest.param("def test_one(): import os; os._exit(0)", "CRASHED", marks=pytest.mark.slow),
    pytest.param("import none_such", "CRASHED", marks=pytest.mark.slow),
    pytest.param("def not_a_test(): 0", "CRASHED", marks=pytest.mark.slow),
    pytest.param("import pytest\ndef test_one(): pytest.skip('because')", "skipped: 1 of 1 tests: Skipped: because",
                 marks=pytest.mark.slow),
])
def test_tests_of_pytest_that_fail_or_do_not_run_are_no_pass(tmp_path, code, shown):
    outcome = outcome_of_test(tmp_path, code)
    assert outcome.outcome.startswith(shown) and outcome.is_well == shown.startswith("skipped"), outcome


def test_a_line_without_a_count_counts_nothing():
    assert nodes.tried_of('{"tried": 3}\n') == 3
    assert nodes.tried_of('{"tried": "x"}') == nodes.tried_of("tried 3") == nodes.tried_of("[]") == 0


def test_parts_have_different_names():
    assert len({part.name for part in PARTS}) == len(PARTS)
