"""Chunks of unequal lengths: runs of equal ones, their places, and every small selection against NumPy."""
import doctest
import itertools
import pickle

import numpy as np
import pytest

from tests.each import each
from zcore.errors import SelectionError
from zcore.kernel.codec.program import Program
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.shard_index import ShardProgram
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select import grid as module
from zcore.kernel.select.box import Box, whole
from zcore.kernel.select.grid import Edges, equal_run, is_entry
from zcore.kernel.select.open_array import OpenArray

LARGE = 2**63 - 1


def listed(shape, edges, starts=None, steps=None, counts=None, chunks=None, program=None):
    """Return a plan whose tasks can only be listed."""
    chunks = chunks or tuple([one.longest for one in edges])
    array = OpenArray(shape, chunks, program=program, fill=bytes(4), template=(b"", b".", b""), edges=edges)
    box = Box(starts or (0,) * len(shape), steps or (1,) * len(shape), counts or shape)
    return WritePlan(array, box)


def test_docstrings_hold():
    assert doctest.testmod(module).failed == 0


def test_runs_places_and_sizes():
    """V3-RGRID-02, V3-RGRID-04"""
    edges = Edges([(1, 3), (3, 1), (3, 2), (2, 1)])
    assert edges.runs == ((1, 3), (3, 3), (2, 1)) and (edges.n_runs, edges.longest) == (3, 3)
    assert (edges.total, edges.n_chunks) == (14, 7)
    assert [edges.place(i) for i in range(7)] == [(0, 1), (1, 1), (2, 1), (3, 3), (6, 3), (9, 3), (12, 2)]
    assert [edges.count(n) for n in range(15)] == [0, 1, 2, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7]
    assert edges.sizes(14) == (1, 1, 1, 3, 3, 3, 2) and edges.sizes(7) == (1, 1, 1, 3, 1) and edges.sizes(0) == ()
    assert edges.are_multiples_of(1) and not edges.are_multiples_of(3)
    for outside in (-1, 7, LARGE):
        with pytest.raises(SelectionError, match="there is no chunk"):
            edges.place(outside)


def test_values_are_equal_by_their_lengths():
    edges = Edges([(2, 1), (2, 1), (5, 1)])
    assert edges == Edges([(2, 2), (5, 1)]) and hash(edges) == hash(Edges([(2, 2), (5, 1)]))
    assert edges != Edges([(2, 2), (5, 2)]) and edges != ((2, 2), (5, 1))
    assert pickle.loads(pickle.dumps(edges)) == edges == eval(repr(edges))


@each(("runs", "error"), [
    ([], ValueError), ([(0, 1)], ValueError), ([(1, 0)], ValueError), ([(-1, 1)], ValueError), ([(1, -1)], ValueError),
    ([(2**63, 1)], ValueError), ([(1, 2**63)], ValueError), ([(2**32, 2**31)], ValueError),
    ([(LARGE, 1), (1, 1)], ValueError), ([(2**100, 2**100)], ValueError), ([(1, 1)] * 9 + [(1, LARGE - 8)], ValueError),
    ([(1.0, 1)], TypeError), ([(1, True)], TypeError), ([("1", 1)], TypeError),
])
def test_lengths_that_are_none(runs, error):
    """V3-RGRID-02, V3-RGRID-03: sums beyond 64 bits among them."""
    with pytest.raises(error):
        Edges(runs)


def test_entries_are_taken_as_documents_have_them():
    """V3-RGRID-02"""
    assert Edges([2, [2, 2], 5, (5, 1)]) == Edges([(2, 3), (5, 2)]) == Edges(iter([2, 2, 2, 5, 5]))
    assert Edges([LARGE]).total == Edges([(1, LARGE)]).total == LARGE
    for entry in (1, LARGE, [1, LARGE], (LARGE, 1)):
        assert is_entry(entry)
    for entry in (0, -1, LARGE + 1, 2**100, True, 1.0, "1", None, {}, [], [1], [1, 2, 3], [0, 1], [1, 0], [1, True],
                  [LARGE + 1, 1], [1, 2**100], [[1, 1], 1]):
        assert not is_entry(entry)
        with pytest.raises((ValueError, TypeError)):
            Edges([1, entry])
        with pytest.raises((ValueError, TypeError)):
            equal_run([1, entry])


def test_chunks_of_one_length_are_found_without_their_sum():
    assert equal_run([3, [3, 4], 3]) == (3, 6) and equal_run([[LARGE, LARGE]]) == (LARGE, LARGE)
    assert equal_run([[2, LARGE], 2]) == equal_run([[2, LARGE]] * 3) == (2, LARGE)
    assert equal_run([1, 2, "never looked at"]) is None
    with pytest.raises(ValueError, match="at least one chunk"):
        equal_run([])


def test_equality_and_hash_look_at_every_run_and_at_few():
    many = [1 + i % 2 for i in range(1000)]
    assert Edges(many) == Edges(tuple(many)) and hash(Edges(many)) == hash(Edges([*many[:-1], 3]))
    assert Edges(many) != Edges([*many[:-1], 3]) and Edges(many) != Edges(many[:-1])


def test_a_run_is_never_spelled_out():
    """V3-RGRID-03"""
    edges = Edges([(1, 2**62), (2, 2**61 - 1)])
    assert edges.total == LARGE - 1 and edges.n_chunks == 2**62 + 2**61 - 1 and edges.count(2**62 + 3) == 2**62 + 2
    assert edges.place(2**62) == (2**62, 2) and edges.place(edges.n_chunks - 1) == (LARGE - 3, 2)
    plan = listed((edges.total,), (edges,))
    assert plan.n_tasks == edges.n_chunks
    assert plan.task(2**62 + 7)[:3] == (str(2**62 + 7), (2**62 + 7,), (slice(0, 2, 1),))
    assert plan.place(2**62 + 7) == ((2**62 + 14,), (2,))
    steps = listed((edges.total,), (edges,), (1,), (2**61,), (4,))
    assert [steps.task(i)[1] for i in range(4)] == [(1,), (2**61 + 1,), (2**62,), (2**62 + 2**60,)]


def test_growth_is_by_chunks_like_the_last_one():
    edges = Edges([(2, 2), (3, 1)])
    assert edges.covering(7) is edges and edges.covering(0) is edges
    assert edges.covering(8).runs == edges.covering(10).runs == ((2, 2), (3, 2))
    assert edges.covering(11).runs == ((2, 2), (3, 3))
    assert edges.covering(2**62).total >= 2**62
    with pytest.raises(ValueError, match="2\\*\\*63"):
        Edges([(1, 1), (2, 1)]).covering(2**63)


def test_which_lengths_agree():
    one = Edges([(2, 2), (3, 1)])
    for other, agreed in [(Edges([(2, 2), (3, 4)]), 7), (Edges([(2, 2), (3, 1), (9, 1)]), 7), (Edges([(2, 3)]), 4),
                          (Edges([(2, 2), (4, 1)]), 4), (Edges([(2, 1), (3, 1)]), 2), (Edges([(1, 9)]), 0),
                          (Edges([(2, 2)]), 4), (Edges([(3, 9)]), 0), (one, 7)]:
        assert [one.agrees(other, n) for n in range(9)] == [n <= agreed for n in range(9)], other
        assert [other.agrees(one, n) for n in range(9)] == [n <= agreed for n in range(9)], other


def test_all_small_selections_agree_with_numpy():
    for lengths in [row for n in (1, 2, 3, 4) for row in itertools.product((1, 2, 3), repeat=n)]:
        edges = Edges([(edge, 1) for edge in lengths])
        length = edges.total - (len(lengths) % 2)  # with and without an overhang
        data, ends = np.arange(length), np.cumsum(lengths)
        for start, stop, step in itertools.product(range(length), (-1, length // 2, length), (1, 2, 3, 5)):
            down = stop < start
            expected = data[start:None if stop < 0 else stop:-step if down else step]
            plan = listed((length,), (edges,), (start,), (-step if down else step,), (len(expected),))
            out = np.full(len(expected), -1)
            touched = []
            for i in range(plan.n_tasks):
                _, (coord,), (inside,), (outside,), covered = plan.task(i)
                (origin,), (edge,) = plan.place(i)
                assert (origin, edge) == edges.place(coord) and 0 <= inside.start < inside.stop <= edge
                part = data[origin:origin + edge]
                assert out[outside].size == part[inside].size > 0 and (out[outside] == -1).all()
                assert covered == (part[inside].size == part.size)
                out[outside] = part[inside]
                touched.append(coord)
            assert out.tolist() == expected.tolist()
            assert touched == np.unique(np.searchsorted(ends, expected, side="right")).tolist()


def test_dimensions_combine_as_a_product():
    plan = listed((7, 10), (Edges([(2, 2), (3, 1)]), None), (1, 0), (1, 1), (6, 10), chunks=(3, 4))
    assert plan.n_tasks == 9 and plan.place(8) == ((4, 8), (3, 4))
    assert [plan.task(i)[0] for i in range(9)] == [f"{i}.{j}" for i in range(3) for j in range(3)]


def test_only_objects_differ_where_chunks_are_in_shards():
    plan = listed((10, 4), (Edges([(2, 2), (6, 1)]), None), chunks=(6, 4),
                  program=ShardProgram((6, 4), (2, 2), Program(())))
    assert plan.n_tasks == 3 and [plan.place(i) for i in range(3)] == [((0, 0), (2, 4)), ((2, 0), (2, 4)),
                                                                       ((4, 0), (6, 4))]


def test_tasks_that_share_a_shard_are_at_its_place(tmp_path):
    """An error says by the shape of its shard which chunk of it is damaged."""
    array = OpenArray((1536, 1024), (1024, 1024), program=ShardProgram((1024, 1024), (64, 1024), Program(())),
                      fill=bytes(2), template=(b"", b".", b""), directory=bytes(tmp_path),
                      edges=(Edges([(512, 1), (1024, 1)]), None))
    plan = ReadPlan(array, whole((1536, 1024)), np.empty((1536, 1024), "u2"), PlanOptions(n_threads=4))
    assert plan.n_tasks == 4 and [plan.task(i)[0] for i in range(4)] == ["0.0", "0.0", "1.0", "1.0"]
    assert [plan.place(i) for i in range(4)] == [((0, 0), (512, 1024))] * 2 + [((512, 0), (1024, 1024))] * 2
