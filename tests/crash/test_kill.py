"""`kill -9` at a random moment: whatever was being done is done or not done, and nothing old comes back."""
from pathlib import Path

import pytest

import zcore
from tests.campaign import counted, round_number

from . import kill_rounds
from .kill_rounds import KINDS

SCRIPT = Path(kill_rounds.__file__).read_text() + """
given = json.loads(sys.argv[2])
ready()
print(json.dumps(rounds(store, **given)))
"""


def kill_often(crew, place, kinds, n_rounds, seed, **environment):
    """Run the rounds in a process without threads of its own, which may fork as it likes; return what was hit."""
    process = crew.start(place, SCRIPT, {"kinds": kinds, "n_rounds": n_rounds, "seed": seed + 100 * round_number()},
                         environment=environment)
    crew.go([process])
    [hits] = crew.results([process])
    counted(sum(hits[kind] for kind in (*KINDS, "between")))
    return hits


@pytest.mark.parametrize("n_rounds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_of_a_writer(crew, place, n_rounds):
    """ZM-CHK-14: each chunk is the old or the new one."""
    hits = kill_often(crew, place, ["write"], n_rounds, 1)
    assert hits["write"] > n_rounds // 4 and hits["none"] == 0
    # What the killed processes have left behind is not listed, and can be removed.
    store = zcore.DirectoryStore(place)
    store.clean_temporary(older_than=-60)
    assert not [name for name in place_names(place) if name.startswith(".__zc_tmp.")]


def place_names(place):
    return [path.name for path in Path(place).rglob("*")]


@pytest.mark.parametrize("n_rounds", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "write"])
def test_kill_of_another_change(crew, place, kind, n_rounds):
    """ZM-LAY-06, ZM-CHK-15: the old array, none, or the new one."""
    hits = kill_often(crew, place, ["write", kind, kind], n_rounds, 2)
    assert hits[kind] > (n_rounds // 10 if n_rounds >= 200 else 0)


@pytest.mark.parametrize("n_rounds", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("environment", [{}, {"CONFINED": "1"}], ids=["native", "confined"])
def test_kill_of_anything(crew, place, environment, n_rounds):
    hits = kill_often(crew, place, KINDS, n_rounds, 3, **environment)
    assert sum(hits[kind] for kind in KINDS) > n_rounds // 2
