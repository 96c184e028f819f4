"""Random lives of all stores, until the time is over."""
import sys
import time
import warnings
from random import Random

from tests.crash.command import main
from tests.property.life.machine import LIVES, lead

# Lives that hypothesis is asked for at once.
N_LIVES = 25


def lives(deadline, seed):
    """Yield (tried, found)."""
    warnings.simplefilter("ignore")      # zarr-python warns of what its future brings
    rng = Random(seed)
    while time.monotonic() < deadline:
        name, number, found = rng.choice(list(LIVES)), rng.randrange(1 << 30), 0
        try:
            lead(name, N_LIVES, number=number)
        except Exception as error:
            found = 1
            notes = "\n".join(getattr(error, "__notes__", ()))
            print(f"{name}, number {number}: {error!r}\n{notes}", file=sys.stderr, flush=True)
        yield N_LIVES, found


if __name__ == "__main__":
    main("life of a store", "sequences", lives)
