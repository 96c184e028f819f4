"""Run schedules of the simulated service: `python -m tests.simulated --seconds 60`, or one again: `--seed S`."""
import argparse
import json
import os
import random
import sys
import time

from tests.simulated.schedule import run


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulated", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, help="replay this schedule, and show its requests")
    parser.add_argument("--first", type=int, help="the first seed; the others follow it")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set of names is that of their hashes.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulated", *sys.argv[1:]])
    if given.seed is not None:
        log = []
        wrong = run(given.seed, log)
        for clock, writer, what, kind, error in log:
            print(f"{clock:5} writer {writer}: {' '.join(map(str, what))}: {kind} {error or ''}")
        print(wrong or "nothing is wrong")
        return int(wrong is not None)
    start, shown = time.monotonic(), 0
    result = {"part": "simulated service", "tried": 0, "unit": "schedules", "found": 0, "seconds": 0}
    seed = random.randrange(2**40) if given.first is None else given.first
    while not result["tried"] or time.monotonic() - start < given.seconds:
        wrong = run(seed)
        result["tried"] += 1
        if wrong is not None:
            result["found"] += 1
            print(wrong, flush=True)
        if time.monotonic() - start > shown + 60:
            shown += 60
            print(f"{result['tried']} schedules, {result['found']} found", flush=True)
        seed += 1
    result["seconds"] = round(time.monotonic() - start, 1)
    print(json.dumps(result))
    return int(result["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
