"""A part of the long tests as a command: it runs for so many seconds, and its last line is what it found, as JSON."""
import argparse
import json
import math
import sys
import time


def main(part, unit, attempts, has_whole=False):
    """Run a part until its time is over.

    Parameters
    ----------
    part, unit : str
        What is tested, and what is counted.
    attempts : callable
        Takes the deadline on the clock of `time.monotonic`, and a random number to begin with; yields (tried, found)
        after every step.
    has_whole : bool
        Whether `attempts` comes to an end where the deadline is infinite.
    """
    parser = argparse.ArgumentParser(description=f"{part}: counted are {unit}")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="by default another one each time")
    if has_whole:
        parser.add_argument("--whole", action="store_const", const=math.inf, dest="seconds",
                            help="try everything once, however long it takes")
    arguments = parser.parse_args()
    start = shown = time.monotonic()
    tried = found = 0
    for n_tried, n_found in attempts(start + arguments.seconds, arguments.seed):
        tried += n_tried
        found += n_found
        if time.monotonic() > shown + 10:
            shown = time.monotonic()
            print(f"{shown - start:.0f} s: {tried} {unit}, {found} found", file=sys.stderr, flush=True)
    print(json.dumps({"part": part, "tried": tried, "unit": unit, "found": found,
                      "seconds": round(time.monotonic() - start, 1)}))
    sys.exit(1 if found else 0)
