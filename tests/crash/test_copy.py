"""`kill -9` of `zcore.copy` at random moments: the next one goes on, and the destination is never a part of itself."""
from pathlib import Path

import pytest

from tests.campaign import counted, round_number

from . import copy_rounds

SCRIPT = Path(copy_rounds.__file__).read_text() + """
given = json.loads(sys.argv[2])
ready()
os.mkdir(path)
print(json.dumps(rounds(path, **given)))
"""


def kill_often(crew, place, kinds, n_kills):
    process = crew.start(place, SCRIPT, {"kinds": kinds, "n_kills": n_kills, "seed": 4 + round_number()})
    crew.go([process])
    [hits] = crew.results([process])
    assert sum(hits[kind] for kind in kinds) >= n_kills and hits["ended"]
    counted(sum(hits[kind] for kind in kinds))


def test_kills_of_copies(crew, place):
    kill_often(crew, place, list(copy_rounds.SETTINGS), 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", copy_rounds.SETTINGS)
def test_two_hundred_kills_of_a_copy(crew, place, kind):
    kill_often(crew, place, [kind], 200)
