"""Zarr by zcore and by others: each reads, changes and resizes what the other made, and their documents say the same.

What a peer cannot do stands in `zarr_peers/peers.py`, by name; anything else it raises is a failure. `pytest -m slow`
goes through the whole product of types, codecs and layouts.
"""
import shutil

import numpy as np
import pytest

import zcore
from tests.each import each

from .zarr_peers import cases, documents
from .zarr_peers.peers import REFUSALS, Peer, PeerError, refusal
from .zarr_peers.rounds import Turns

NEEDS = {"zarr": ("zarr", "numcodecs"), "zarrs": ("zarr", "zarrs"), "tensorstore": ("tensorstore",)}
N_CASES = {3: 40, 2: 25}  # of the sample
SAMPLE = [case for format, count in N_CASES.items() for case in cases.sample(format, count, seed=2)]


def start(name):
    for module in NEEDS[name]:
        # Found, not imported: a peer runs in its own process alone.
        if not documents.is_installed(module):
            pytest.skip(f"{module} is not installed")
    return Peer(name)


@pytest.fixture(scope="module", params=list(NEEDS))
def peer(request):
    peer = start(request.param)
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def zarr():
    peer = start("zarr")
    yield peer
    peer.close()


def play(case, peer, folder):
    turns = Turns(case, peer, folder)
    documents.assert_same(turns.ours, turns.theirs)
    turns.rounds()


@pytest.mark.thinned(3, "peer", "case")
@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_both_work_on_arrays_of_both(peer, case, tmp_path):
    """V3-TIER-1, V3-PY-01, V2-ARR-10"""
    why = refusal(peer, case)
    if why is not None:
        pytest.skip(f"{peer.name} {why}")
    play(case, peer, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("chain", [(format, chain) for format in (3, 2) for chain in cases.CHAINS[format]], ids=str)
def test_both_work_on_arrays_of_both_in_the_whole_product(peer, chain, tmp_path):
    n_done = 0
    for case in cases.product(chain[0]):
        if case.chain == chain[1] and refusal(peer, case) is None:
            folder = tmp_path / str(case).replace("/", "slash")
            folder.mkdir()
            try:
                play(case, peer, folder)
            except Exception as error:
                error.add_note(f"of {case}")
                raise
            shutil.rmtree(folder)
            n_done += 1
    assert n_done or all(refusal(peer, case) for case in cases.product(chain[0]) if case.chain == chain[1])


@each("row", REFUSALS, ids=lambda row: f"{row[0]} {row[-1]}")
def test_a_refusal_is_of_some_cases_and_not_of_all(row):
    concerned = [row[3](case) for case in (*cases.product(3), *cases.product(2))]
    assert any(concerned) and not all(concerned)


@pytest.mark.parametrize("format", [3, 2])
def test_a_sample_shows_every_value_and_is_always_the_same(format):
    some = cases.sample(format, N_CASES[format], seed=2)
    for i, values in enumerate(cases.axes(format)):
        possible = {case[i + 1] for case in cases.product(format)} if i < 6 else set(values)
        assert {case[i + 1] for case in some} >= possible
    assert [case for case in SAMPLE if case.format == format] == some


# Groups, which tensorstore has not.

ATTRIBUTES = {"title": "Wetter in Zürich", "n": 3, "list": [1, None, {"x": 0.1}], "none": None}
MEMBERS = {
    "a": np.arange(12, dtype="i4").reshape(3, 4),
    "b": {"inner": True},
    "b/c": {},
    "b/c/d": np.linspace(0, 1, 7),
}


def make_by_zcore(path, format):
    root = zcore.create_group(path, zarr_format=format, attributes=ATTRIBUTES)
    for name, content in MEMBERS.items():
        if isinstance(content, dict):
            root.create_group(name, attributes=content)
        else:
            array = root.create_array(name, shape=content.shape, dtype=content.dtype, attributes={"of": name})
            array[...] = content
    return root


def described(root):
    return dict(root.attrs), {name: (dict(node.attrs), node[...] if isinstance(node, zcore.Array) else None)
                              for name, node in root.members(max_depth=None)}


def assert_tree(found):
    attributes, members = found
    assert attributes == ATTRIBUTES
    assert members.keys() == MEMBERS.keys()
    for name, content in MEMBERS.items():
        attributes, elements = members[name]
        if isinstance(content, dict):
            assert attributes == content and elements is None
        else:
            assert attributes == {"of": name} and cases.same(elements, content)


@pytest.mark.parametrize("format", [3, 2])
class TestGroups:
    def test_of_zcore_are_read(self, zarr, format, tmp_path):
        make_by_zcore(tmp_path / "g", format)
        assert_tree(zarr.describe_group(str(tmp_path / "g"), format, False))
        with pytest.raises(PeerError):
            zarr.describe_group(str(tmp_path / "g"), format, True)
        zcore.consolidate_metadata(tmp_path / "g")
        assert_tree(zarr.describe_group(str(tmp_path / "g"), format, True))

    def test_of_the_peer_are_read(self, zarr, format, tmp_path):
        zarr.make_group(str(tmp_path / "g"), format, ATTRIBUTES, MEMBERS)
        assert_tree(described(zcore.open_group(tmp_path / "g")))
        with pytest.raises(ValueError, match="no consolidated metadata"):
            zcore.open_group(tmp_path / "g", use_consolidated=True)
        zarr.consolidate(str(tmp_path / "g"), format)
        assert_tree(described(zcore.open_group(tmp_path / "g", use_consolidated=True)))

    def test_consolidated_metadata_says_the_same(self, zarr, format, tmp_path):
        """Of one tree, by both."""
        make_by_zcore(tmp_path / "ours", format)
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        zcore.consolidate_metadata(tmp_path / "ours")
        zarr.consolidate(str(tmp_path / "theirs"), format)
        ours, theirs = (documents.consolidated(tmp_path / name, format) for name in ("ours", "theirs"))
        assert ours == theirs and set(MEMBERS) <= {path.removesuffix("/.zgroup").removesuffix("/.zarray")
                                                   for path in ours}

    def test_attributes_that_the_other_changed(self, zarr, format, tmp_path):
        make_by_zcore(tmp_path / "ours", format)
        zarr.make_group(str(tmp_path / "theirs"), format, ATTRIBUTES, MEMBERS)
        for path in ("", "a", "b"):
            zarr.change_attributes(str(tmp_path / "ours" / path), format, {"new": [1.5, "ü"]})
            zcore.open(tmp_path / "theirs" / path, "r+").attrs.update(new=[1.5, "ü"])
        ours = described(zcore.open_group(tmp_path / "ours"))
        theirs = zarr.describe_group(str(tmp_path / "theirs"), format, False)
        for attributes, members in (ours, theirs):
            assert attributes == ATTRIBUTES | {"new": [1.5, "ü"]}
            assert members["a"][0] == {"of": "a", "new": [1.5, "ü"]}
            assert members["b"][0] == {"inner": True, "new": [1.5, "ü"]}

    def test_a_change_by_zcore_drops_the_copy_that_the_peer_made(self, zarr, format, tmp_path):
        zarr.make_group(str(tmp_path / "g"), format, ATTRIBUTES, MEMBERS)
        zarr.consolidate(str(tmp_path / "g"), format)
        zcore.open_group(tmp_path / "g", "r+").create_array("b/new", shape=3, dtype="i1")
        _, members = zarr.describe_group(str(tmp_path / "g"), format, None)
        assert set(members) == {*MEMBERS, "b/new"}
