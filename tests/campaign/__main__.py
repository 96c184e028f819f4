"""The runner: gives each part its share of the time, and prints the table of what came out."""
import argparse
import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple
from pathlib import Path

from .parts import PARTS

ROOT = Path(__file__).parents[2]
# Of a part that goes on after its time. Its last test may be a long one.
GRACE_SECONDS = 900
_SHOWN_EVERY = 10
_KEYS = {"tried", "unit", "found", "seconds"}

Outcome = namedtuple("Outcome", ("part", "often", "outcome", "is_well"))


def run_part(part, seconds, directory, log):
    """Run the command of a part, show what it does, and return its `Outcome`."""
    folder = tempfile.mkdtemp(dir=directory, prefix="part-")
    environment = {**os.environ, "ZCORE_TEST_DIRECTORY": folder, "TMPDIR": folder,
                   "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable if word == "python" else word for word in part.command]
    with open(log, "w") as written:
        process = subprocess.Popen([*command, "--seconds", f"{seconds:.0f}"], cwd=ROOT, env=environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            last = _follow(process, written, seconds)
            status = None if last is None else process.wait()
        finally:
            # The part, and all that it has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return judge(part, last, status)


def _follow(process, written, seconds):
    """Write what a process prints to a file, show a line of it now and then, and return the last line."""
    lines = queue.SimpleQueue()

    def read():
        with process.stdout:
            for line in process.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    start = shown = time.monotonic()
    last = line = ""
    while line is not None:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            line = ""
        if line:
            written.write(line)
            written.flush()
            last = line.strip() or last
        now = time.monotonic()
        if now - shown >= _SHOWN_EVERY:
            print(f"    {now - start:.0f} of {seconds:.0f} s: {last[:100]}", flush=True)
            shown = now
        if now - start > seconds + GRACE_SECONDS:
            return None
    return last


def judge(part, last, status):
    """Return the `Outcome` of a part by its last line, None if it did not end, and by its exit status."""
    if last is None:
        return Outcome(part, "?", f"HUNG: it was ended {GRACE_SECONDS} s after its time", False)
    try:
        told = json.loads(last)
        if not isinstance(told, dict) or not _KEYS <= told.keys():
            raise ValueError("no result")
        tried, found = int(told["tried"]), int(told["found"])
    except (ValueError, TypeError):
        return Outcome(part, "?", f"CRASHED: status {status}, and its last line is no result: {last[:80]!r}", False)
    often = f"{tried:,} {told['unit']} in {told['seconds']:.0f} s"
    if status != (found > 0):
        return Outcome(part, often, f"CRASHED: status {status} after {found} findings", False)
    if found:
        return Outcome(part, often, f"FOUND {found}", False)
    skipped = told.get("skipped")
    if not tried:
        return Outcome(part, often, f"skipped: {skipped}" if skipped else "CRASHED: nothing was tried", bool(skipped))
    return Outcome(part, often, "nothing" + (f"; skipped: {skipped}" if skipped else ""), True)


def table(outcomes):
    """Return a table in Markdown."""
    rows = [("what was tried", "how often", "with which command", "what came out")]
    rows += [(outcome.part.what, outcome.often, f"`{shlex.join(outcome.part.command)}`", outcome.outcome)
             for outcome in outcomes]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([rows[0], "|---" * 4 + "|", *rows[1:]])


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--directory", help="a folder of the file system to try; by default that of temporary files")
    parser.add_argument("--parts", help="names, separated by commas; by default all")
    parser.add_argument("--list", action="store_true", help="name the parts, and end")
    given = parser.parse_args()
    if given.list:
        for part in PARTS:
            print(f"{part.name}: {part.what}\n    {shlex.join(part.command)}")
        return 0
    names = [part.name for part in PARTS] if given.parts is None else given.parts.split(",")
    if unknown := set(names) - {part.name for part in PARTS}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; --list names them")
    parts = [part for part in PARTS if part.name in names]
    end = time.monotonic() + 3600 * given.hours
    outcomes = []
    logs = tempfile.mkdtemp(prefix="zcore-campaign-logs-")
    with tempfile.TemporaryDirectory(dir=given.directory, prefix="zcore-campaign-") as directory:
        print(f"{len(parts)} parts in {given.hours:g} hours; files in {directory}, what the parts print in {logs}")
        for i, part in enumerate(parts):
            seconds = max(1, (end - time.monotonic()) / (len(parts) - i))
            print(f"{i + 1} of {len(parts)}, {part.name}: {part.what}", flush=True)
            try:
                outcome = run_part(part, seconds, directory, Path(logs, f"{i + 1}.txt"))
            except KeyboardInterrupt:
                outcomes.append(Outcome(part, "?", "INTERRUPTED", False))
                outcomes += [Outcome(part, "-", "NOT RUN", False) for part in parts[i + 1:]]
                break
            print(f"    {outcome.often}: {outcome.outcome}", flush=True)
            if not outcome.is_well:
                print(f"    see {logs}/{i + 1}.txt", flush=True)
            outcomes.append(outcome)
    print("\n" + table(outcomes))
    n_unwell = sum(not outcome.is_well for outcome in outcomes)
    print(f"\n{len(outcomes) - n_unwell} parts well, {n_unwell} not")
    return int(n_unwell > 0)


if __name__ == "__main__":
    sys.exit(main())
