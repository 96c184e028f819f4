"""Run with `failing.c` preloaded, under strace: does every call of the system come by the library?

`counted.py library folder verb…` calls each verb once, and prints as JSON how many calls of each class came through the
library. It marks in the trace where it begins to count, and where it ends.
"""
import json
import os
import sys

from tests.crash.failing.rounds import Library
from tests.crash.failing.verbs import VERBS

BEGIN, END = "/counted/begin", "/counted/end"


def main():
    library, base = Library(sys.argv[1]), sys.argv[2]
    counts = {}
    for i, name in enumerate(sys.argv[3:]):
        verb = VERBS[name]
        for again in (0, 1):     # the first time modules are imported
            place = f"{base}/{i}-{again}"
            os.makedirs(place)
            verb.make(place)
            if not again:
                verb.call(place, {})
        kept = {}

        def call(verb=verb, place=place, kept=kept):
            os.access(BEGIN, os.F_OK)
            verb.call(place, kept)
            os.access(END, os.F_OK)

        _, error, _ = library.run(call, "CALLS", 1 << 40)
        assert error is None, (name, error)
        counts[name] = library.counts
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
