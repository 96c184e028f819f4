"""Trees of ASDF files that somebody has changed: only errors of zcore come out, or values."""
import random
import warnings

import numpy as np
import pytest

yaml = pytest.importorskip("yaml")

from tests.unit.asdf.made_blocks import MadeFile  # noqa: E402
from zcore.asdf.tree.dump import Inline, Stream  # noqa: E402
from zcore.asdf.tree.load import dump, load  # noqa: E402
from zcore.asdf.tree.origin import Origin, Reference  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping  # noqa: E402
from zcore.errors import ZcoreError  # noqa: E402
from zcore.stores.asdf.nodes import TreeGroup, attributes_of, root_of  # noqa: E402

BASE = np.arange(24, dtype=">f4").reshape(4, 6)
SHARED = [1, {"x": BASE}]
TREE = {
    "a": BASE, "view": BASE[1:3, ::2], "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "shared": [SHARED, SHARED],
    "inline": Inline([[1, 2], [3, 4]]), "texts": Inline(["a", "b"]), "z": 1 - 2j, "big": IntegerNode.of(2**70),
    "records": np.array([(1, b"ab")], [("n", "i2"), ("s", "S2")]), "link": Reference({"$ref": "#/shared/0"}, None),
    "tagged": TaggedMapping("asdf://example.org/tags/a-1.0.0", {"k": [1.5, None, True, "1e5", "x: y"]}),
    "stream": Stream((2,), "<i2"), "date": "2020-01-02",
}
FILE = MadeFile()
TEXT = dump(TREE, FILE.add_block)
# What makes more trouble than single bytes do.
WORDS = [b"*id001", b"&id001 ", b"source: 99", b"source: -1", b"shape: ['*', 3]", b"- ", b"[", b"]", b"{", b"}",
         b"...\n",
         b"---\n", b"!!python/object:os.system ", b"$ref: '#/'", b"18446744073709551616", b"-1", b".nan", b"1:30:30",
         b"strides: [8, -8]", b"offset: 9223372036854775807", b"datatype: [[[int8]]]", b"<<: *id001", b"\x00", b"\xff",
         b"!core/ndarray-1.0.0 ", b"~", b"? ", b": ", b"%TAG ! x:\n", b"mask: 1"]


def mutated(rng):
    text = bytearray(TEXT)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        kind = rng.randrange(5)
        if kind == 0:
            text[at] = rng.randrange(256)
        elif kind == 1:
            del text[at:min(at + rng.randint(1, 20), len(text) - 1)]
        elif kind == 2:
            text[at:at] = rng.choice(WORDS)
        elif kind == 3:
            start = rng.randrange(len(text))
            text[at:at + rng.randint(0, 20)] = text[start:start + rng.randint(1, 60)]
        else:
            text = text[:at + 1] if rng.random() < 0.2 else text
    return bytes(text) or TEXT


def use(text):
    """Do with a tree whatever a program does; returns whether it is one."""
    try:
        tree = load(text, FILE.blocks)
    except ZcoreError:
        return False
    pending = [root_of(tree)]
    while pending:
        node = pending.pop()
        try:
            attributes_of(node)
            if isinstance(node, TreeGroup):
                pending += node.members.values()
            elif hasattr(node, "read"):
                array = node.read()
                assert array.nbytes <= 10_000 or not array.flags.writeable
        except ZcoreError:
            pass
    if isinstance(tree, dict):
        try:
            dump(tree, MadeFile().add_block)
        except (ZcoreError, TypeError, ValueError):
            pass
    return True


@pytest.mark.parametrize("parser", ["libyaml", "python"])
@pytest.mark.parametrize("n", [pytest.param(1, id="some"), pytest.param(30, id="many", marks=pytest.mark.slow)])
def test_mutated_trees(parser, n, monkeypatch):
    """AS-TREE-08, AS-ND-13: nothing is made but plain data, and no view leads out of its block."""
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
        n_rounds = 150 * n
    else:
        n_rounds = 1500 * n
    rng = random.Random(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [use(mutated(rng)) for _ in range(n_rounds)]
    assert 0 < sum(found) < n_rounds


def test_every_cut_of_a_tree():
    """AS-TREE-02, AS-TREE-03"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, len(TEXT)):
            use(TEXT[:n])


def test_origins_are_let_go():
    """A tree that is part of itself is garbage once nobody has it."""
    origin = Origin(FILE.blocks, len(TEXT))
    tree = load(TEXT, origin=origin)
    assert tree["shared"][0] is tree["shared"][1] and len(origin.nodes()) >= 9
