"""Every pair of verbs on one array, in every format: some order of the calls explains what is found afterwards."""
import pytest

from tests.crash.races import unaligned
from tests.crash.races.model import REFUSED, Call, Node, explains
from tests.crash.races.rounds import Arena, pairs
from tests.crash.races.verbs import FORMATS, verbs
from tests.each import each

# Those that the order of locks makes hard; all others are slow tests.
HARD = [("write", "write"), ("write", "shrink"), ("append", "append"), ("write", "overwrite"), ("delete", "delete"),
        ("overwrite", "copy to"), ("delete", "copy to"), ("shrink", "copy to"), ("write", "move"),
        ("copy from", "attributes"), ("create", "create"), ("consolidate", "attributes")]
X = Node((1, 2, 3, 4, 5), frozenset(), -1, 2, 0)


@pytest.fixture(scope="module")
def processes():
    with Arena(n_workers=3) as arena:
        yield arena


def test_hard_pairs_of_processes(processes):
    for pair in HARD:
        for seed in range(3):
            processes.round("v3", pair, seed)


def test_hard_pairs_of_threads():
    with Arena("threads") as arena:
        for pair in HARD:
            for seed in range(3):
                arena.round("v3", pair, seed)


def test_moves_of_threads_in_memory():
    with Arena("threads", "memory") as arena:
        for seed in range(10):
            arena.round("v3", ("move", "move"), seed)


def test_copies_of_threads_in_memory():
    """One may finish or remove what the other one has begun, but both see the same moment."""
    with Arena("threads", "memory") as arena:
        for format in FORMATS:
            for seed in range(20):
                arena.round(format, ("copy to", "copy to"), seed)


@pytest.mark.parametrize("format", FORMATS)
def test_three_at_once(processes, format):
    for seed in range(6):
        processes.round(format, ("write", "shrink", "append"), seed)


@pytest.mark.slow
@pytest.mark.parametrize("format, verb", [(format, verb) for format in FORMATS for verb in verbs(format)])
@pytest.mark.parametrize("workers, where", [("processes", "directory"), ("threads", "directory"),
                                            ("threads", "memory")])
def test_all_pairs(workers, where, format, verb):
    """Those that begin with one verb: all of a format would take longer than a test may."""
    n_rounds = 200 if workers == "processes" else 20
    with Arena(workers, where) as arena:
        for pair in pairs(format):
            if pair[0] == verb:
                for seed in range(n_rounds):
                    arena.round(format, pair, seed)
    assert arena.n_overlaps > arena.n_rounds // 20


@pytest.mark.parametrize("format", ["v3", "sharded"])
def test_unaligned_writers(format):
    n_written, n_lost = unaligned.run(format, 400)
    assert (n_written, n_lost) == (400, 0)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_many_unaligned_writers(format):
    n_written, n_lost = unaligned.run(format, 250_000)
    assert (n_written, n_lost) == (250_000, 0)


# the judge

def state(**nodes):
    return frozenset(nodes.items())


def call(verb, argument, start, end, *outcome):
    return Call(verb, argument, start, end, outcome or ("ok",), False)


WRITES = [call("write", {0: 10, 1: 10, 2: 10}, 0, 9), call("write", {1: 20, 2: 20}, 5, 20)]


@each("values, is_legal", [
    ((10, 20, 20, 4, 5), True),
    ((10, 20, 10, 4, 5), True),      # each object has an order of its own
    ((10, 10, 10, 4, 5), True),
    ((1, 20, 20, 4, 5), False),      # lost
    ((10, 2, 20, 4, 5), False),      # torn: within one object
    ((10, 20, 20, 4, 7), False),     # invented
])
def test_the_judge_of_two_writes(values, is_legal):
    assert explains(state(x=X), WRITES, state(x=X._replace(values=values))) == is_legal


def test_the_judge_knows_which_call_came_first():
    later = [WRITES[0], WRITES[1]._replace(start=15)]
    assert explains(state(x=X), later, state(x=X._replace(values=(10, 20, 20, 4, 5))))
    assert not explains(state(x=X), later, state(x=X._replace(values=(10, 10, 20, 4, 5))))


def test_the_judge_finds_what_is_resurrected():
    calls = [call("shrink", 1, 0, 5), call("grow", 3, 6, 9)]
    assert explains(state(x=X), calls, state(x=X._replace(values=(1, -1, -1))))
    assert not explains(state(x=X), calls, state(x=X._replace(values=(1, 2, -1))))


def test_the_judge_finds_an_error_without_reason():
    calls = [call("write", {0: 10}, 0, 9, "NodeNotFoundError"), call("attributes", ("a", 1), 0, 9)]
    assert not explains(state(x=X), calls, state(x=X._replace(attributes=frozenset({("a", 1)}))))
    assert not explains(state(x=X), [call("delete", None, 0, 9), call("delete", None, 0, 9)], state())
    assert explains(state(x=X), [call("delete", None, 0, 9), call("delete", None, 0, 9, "NodeNotFoundError")], state())


def test_the_judge_of_a_write_that_is_refused():
    """It may have written the objects before the one whose lock the outer call holds, and no half of another."""
    calls = [call("write", {4: 10}, 0, 9), call("write", {2: 20, 3: 20, 4: 20}, 4, 5, *REFUSED)]
    for values, is_legal in (((1, 2, 3, 4, 10), True), ((1, 2, 20, 20, 10), True), ((1, 2, 20, 4, 10), False)):
        assert explains(state(x=X), calls, state(x=X._replace(values=values)), (0, 1)) == is_legal
        assert not explains(state(x=X), calls, state(x=X._replace(values=values)))


def test_the_judge_finds_a_mixed_node():
    overwrite = call("overwrite", ((7, 7, 7, 7, 7), -10, 2), 0, 9)
    made = Node((7, 7, 7, 7, 7), frozenset({("by", 1)}), -10, 2, 0)
    calls = [overwrite, call("shrink", 4, 0, 9)]
    assert explains(state(x=X), calls, state(x=made._replace(values=(7, 7, 7, 7))))
    assert explains(state(x=X), calls, state(x=made))
    assert not explains(state(x=X), calls, state(x=made._replace(values=(7, 7, -1, -1, -1))))
    assert not explains(state(x=X), calls, state(x=made._replace(fill=-1)))
