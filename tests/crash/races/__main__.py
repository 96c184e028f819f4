"""Rounds of random pairs and threes of verbs, in all formats, until the time is over."""
import sys
import time
from random import Random

from tests.crash.command import main
from tests.crash.races import verbs
from tests.crash.races.rounds import Arena

# How many rounds one arena is good for: workers are forked and folders are made anew after that.
N_ROUNDS = 200


def rounds(deadline, seed):
    """Yield (1, found) for each round."""
    rng = Random(seed)
    while time.monotonic() < deadline:
        n_workers = rng.choice((2, 2, 2, 3))
        workers, where = rng.choice((("processes", "directory"),) * 4 + (
            ("processes", "confined"), ("threads", "directory"), ("threads", "confined"), ("threads", "memory")))
        with Arena(workers, where, n_workers) as arena:
            for _ in range(N_ROUNDS):
                if time.monotonic() > deadline:
                    break
                format = rng.choice(verbs.FORMATS)
                chosen = [rng.choice(verbs.verbs(format)) for _ in range(n_workers)]
                try:
                    arena.round(format, chosen, rng.randrange(1 << 30))
                except AssertionError as error:
                    print(f"{workers}, {where}, {error}\n", file=sys.stderr, flush=True)
                    yield 1, 1
                else:
                    yield 1, 0


if __name__ == "__main__":
    main("races", "rounds", rounds)
