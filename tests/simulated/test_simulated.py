"""Some schedules of the simulated service; the campaign runs more."""
import pytest

from tests.campaign import counted
from tests.simulated.schedule import run

N_SEEDS, N_PARTS = 120, 4


@pytest.mark.parametrize("part", range(N_PARTS))
def test_schedules(part):
    seeds = range(part, N_SEEDS, N_PARTS)
    wrong = [found for seed in seeds if (found := run(seed)) is not None]
    counted(len(seeds))
    assert not wrong, "\n".join(wrong)


def test_a_seed_says_all():
    """A failure can be replayed: the same requests, in the same order, with the same outcomes."""
    logs = []
    for _ in range(2):
        logs.append([])
        assert run(419, logs[-1]) is None
        logs[-1] = [(*entry[:4], repr(entry[4])) for entry in logs[-1]]
    assert len(logs[0]) > 100 and logs[0] == logs[1]


@pytest.mark.parametrize("patched, first", [
    ("zcore.engine.node_binding.put_stamped", 0),
    ("zcore.stores.remote.store.RemoteStore._put", 0),
    ("zcore.engine.stamps.MAX_TRIES", 0),
])
def test_the_judge_finds_what_is_wrong(monkeypatch, patched, first):
    """Without stamps, without conditions, and with one request for each change."""
    from zcore.stores.remote.store import RemoteStore

    put = RemoteStore._put
    monkeypatch.setattr(patched, {
        "put_stamped": lambda store, key, value, identity: store.set_if_same(key, value, identity),
        "_put": lambda self, key, value, condition=None: put(self, key, value),
        "MAX_TRIES": 1,
    }[patched.rpartition(".")[2]])
    assert any(run(seed) is not None for seed in range(first, first + 1000))
