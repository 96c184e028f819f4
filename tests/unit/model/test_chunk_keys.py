"""The prefix, suffix and separator rule of the early v3 draft: its worked examples, its inverse, what it refuses."""
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from zcore.errors import SelectionError
from zcore.model.chunk_keys import ChunkKeyEncoding, parse_index

coords_of = st.lists(st.integers(0, 2**63 - 1), max_size=5).map(tuple)
parts = st.text("cz-_.x7", max_size=3)


@st.composite
def encodings(draw):
    try:
        return ChunkKeyEncoding(
            draw(st.sampled_from(["", "__zdata__", "a/b"])), draw(parts),
            draw(st.sampled_from([".", "/", "-", "..", "_/"])), draw(parts), draw(st.sampled_from([None, "0", "all"])),
        )
    except ValueError:
        return ChunkKeyEncoding()


def test_defaults_are_the_drafts():
    """D3-KEY-01: prefix "", suffix "", separator "."."""
    encoding = ChunkKeyEncoding()
    assert (encoding.prefix, encoding.suffix, encoding.separator) == ("", "", ".")
    assert encoding.encode((1, 23, 45)) == "1.23.45"


@pytest.mark.parametrize(("coords", "key"), [((1, 23, 45), "1.23.45"), ((7,), "7"), ((0, 0), "0.0")])
def test_worked_example_has_no_empty_parts(coords, key):
    """D3-KEY-02, D3-KEY-06, D3-KEY-07: an empty prefix and suffix contribute nothing."""
    assert ChunkKeyEncoding().encode(coords) == key


@pytest.mark.parametrize(("separator", "key"), [(".", "c.1.23.45.blosc"), ("/", "c/1/23/45/blosc")])
def test_prefix_and_suffix_are_joined_parts(separator, key):
    """D3-KEY-03"""
    assert ChunkKeyEncoding(prefix="c", suffix="blosc", separator=separator).encode((1, 23, 45)) == key


@each("text", ["", "01", "00", "+1", "-1", " 1", "1 ", "1_0", "1.0", "a", "0x1", "²", "١", "1" * 20])
def test_index_that_is_not_canonical_is_a_value_error(text):
    """D3-KEY-04: ASCII decimal, no padding, no sign."""
    with pytest.raises(ValueError, match="decimal digits"):
        parse_index(text)


@pytest.mark.parametrize("number", [0, 1, 10, 2**53 + 1, 2**63 - 1])
def test_index_digits_are_plain_decimal(number):
    """D3-KEY-04"""
    assert parse_index(str(number)) == number
    assert ChunkKeyEncoding().encode((number,)) == str(number)


@pytest.mark.parametrize(("named", "spelled_out", "key"), [
    (ChunkKeyEncoding.v3(), ChunkKeyEncoding(prefix="c", separator="/"), "c/1/23/45"),
    (ChunkKeyEncoding.v2(), ChunkKeyEncoding(), "1.23.45"),
    (ChunkKeyEncoding.v2("/"), ChunkKeyEncoding(separator="/"), "1/23/45"),
    (ChunkKeyEncoding.zmeta().replace(directory=""), ChunkKeyEncoding(separator=".", suffix="blosc"), "1.23.45.blosc"),
])
def test_rule_subsumes_every_format(named, spelled_out, key):
    """D3-KEY-05: v3 default, v2 with "." and "/", and the format of 2016."""
    assert named == spelled_out
    assert named.encode((1, 23, 45)) == key


def test_zmeta_chunks_lie_in_their_directory():
    """ZM-CHK-01, ZM-LAY-04"""
    encoding = ChunkKeyEncoding.zmeta()
    assert [encoding.encode(coords) for coords in ((0, 0), (4, 2), (3,))] == [
        "__zdata__/0.0.blosc", "__zdata__/4.2.blosc", "__zdata__/3.blosc",
    ]


@each(("encoding", "key"), [
    (ChunkKeyEncoding.v3("/"), "c"),
    (ChunkKeyEncoding.v3("."), "c"),
    (ChunkKeyEncoding(prefix="c", suffix="blosc"), "c.blosc"),
    (ChunkKeyEncoding(), "0"),
    (ChunkKeyEncoding.v2("/"), "0"),
    (ChunkKeyEncoding.zmeta(), "__zdata__/0.blosc"),
    (ChunkKeyEncoding(scalar="all"), "all"),
])
def test_no_indices_never_make_an_empty_key(encoding, key):
    """D3-KEY-08, ZM-CHK-13"""
    assert encoding.encode(()) == key
    assert encoding.decode(key, 0) == ()
    assert encoding.decode(key + "x", 0) is None


@each("wrong", [
    {"separator": ""}, {"separator": "1"}, {"separator": "a0b"}, {"separator": "//"}, {"separator": "/./"},
    {"separator": "/../"}, {"separator": "\n"}, {"separator": "é"}, {"prefix": "\0"}, {"prefix": "\x7f"},
    {"prefix": "ü"}, {"prefix": "/"}, {"prefix": "/c"}, {"prefix": "c/", "separator": "/"},
    {"prefix": ".", "separator": "/"}, {"prefix": "..", "separator": "/"}, {"prefix": "../x"}, {"prefix": "a//b"},
    {"suffix": "x/"}, {"suffix": "/x", "separator": "/"}, {"suffix": "..", "separator": "/"}, {"suffix": "x/.."},
    {"directory": "/"}, {"directory": "/a"}, {"directory": "a/"}, {"directory": ".."}, {"directory": "a/./b"},
    {"prefix": "", "scalar": "", "suffix": ""}, {"scalar": ".."},
])
def test_parts_that_make_unsafe_or_ambiguous_keys_are_refused(wrong):
    """D3-KEY-09"""
    with pytest.raises(ValueError, match="chunk key"):
        ChunkKeyEncoding(**wrong)


@pytest.mark.parametrize("wrong", [b"c", None, 0])
def test_part_of_another_type_is_a_type_error(wrong):
    """D3-KEY-09"""
    with pytest.raises(TypeError, match="prefix"):
        ChunkKeyEncoding(prefix=wrong)


@each("key", [
    "", "c", "c.", "c.1", "c.1.2", "c.1.2.3.4.blosc", "c.1.2.blosc.x", "c.01.2.blosc", "c.+1.2.blosc", "c. 1.2.blosc",
    "c.1.2.blosc ", "c..2.blosc", "c.1..blosc", "x.1.2.blosc", "c.1.2.BLOSC", "c.-1.2.blosc", "c.1.2.3.blosc",
    "c.1.٢.blosc", "c.1." + "9" * 5000 + ".blosc", "c.blosc", "c.1.2.blosc.lock", "c.1.2.blosc.partial",
])
def test_key_that_names_no_chunk_decodes_to_none(key):
    """V3-KEY-04, D3-KEY-10, ZM-CHK-03: other arity, other parts, indices that are not canonical."""
    assert ChunkKeyEncoding(prefix="c", suffix="blosc").decode(key, 2) is None


@given(encodings(), coords_of)
def test_decode_is_the_inverse_of_encode(encoding, coords):
    """V3-KEY-04, D3-KEY-10"""
    assert encoding.decode(encoding.encode(coords), len(coords)) == coords


def test_overlapping_prefix_and_suffix_do_not_share_characters():
    encoding = ChunkKeyEncoding(prefix="a-", suffix="-a", separator="-")
    assert encoding.decode("a--a", 1) is None
    assert encoding.decode(encoding.encode((3,)), 1) == (3,)


@pytest.mark.parametrize(("encoding", "registered"), [
    (ChunkKeyEncoding.v3("/"), ("default", "/")), (ChunkKeyEncoding.v3("."), ("default", ".")),
    (ChunkKeyEncoding.v2("."), ("v2", ".")), (ChunkKeyEncoding.v2("/"), ("v2", "/")),
])
def test_v3_registers_two_encodings(encoding, registered):
    """D3-KEY-11"""
    assert encoding.v3_name() == registered


@each("encoding", [
    ChunkKeyEncoding.zmeta(), ChunkKeyEncoding(suffix="blosc"), ChunkKeyEncoding(prefix="d", separator="/"),
    ChunkKeyEncoding.v3("-"), ChunkKeyEncoding(scalar="x"), ChunkKeyEncoding(prefix="c", scalar="0"),
    ChunkKeyEncoding(directory="data"),
])
def test_v3_refuses_every_other_rule(encoding):
    """D3-KEY-11: the final metadata cannot express another prefix, suffix or separator."""
    with pytest.raises(ValueError, match="cannot record"):
        encoding.v3_name()


@pytest.mark.parametrize("encoding", [
    ChunkKeyEncoding(), ChunkKeyEncoding.v3(), ChunkKeyEncoding.zmeta(), ChunkKeyEncoding(prefix="1", suffix="1"),
])
def test_keys_of_a_grid_are_distinct(encoding):
    """D3-KEY-12: all 12 * 12 * 12 chunks of a grid, one- and two-digit indices."""
    grid = list(itertools.product(range(12), repeat=3))
    assert len({encoding.encode(coords) for coords in grid}) == len(grid)


@given(encodings(), st.integers(0, 4), st.data())
def test_two_chunks_never_share_a_key(encoding, ndim, data):
    """D3-KEY-12"""
    draw = st.tuples(*[st.integers(0, 2**63 - 1)] * ndim)
    one, other = data.draw(draw), data.draw(draw)
    assert (encoding.encode(one) == encoding.encode(other)) == (one == other)


@given(encodings(), coords_of)
def test_template_makes_the_same_keys(encoding, coords):
    head, separator, tail = encoding.template(len(coords))
    key = head + separator.join(str(coord).encode() for coord in coords) + tail
    assert key.decode("ascii") == encoding.encode(coords)


def test_template_of_each_format():
    assert ChunkKeyEncoding.zmeta().template(2) == (b"__zdata__/", b".", b".blosc")
    assert ChunkKeyEncoding.v3().template(3) == (b"c/", b"/", b"")
    assert ChunkKeyEncoding.v3().template(0) == (b"c", b"", b"")


def test_negative_coordinate_names_its_dimension():
    with pytest.raises(SelectionError) as caught:
        ChunkKeyEncoding().encode((0, -1))
    assert caught.value.dimension == 1
    with pytest.raises(TypeError):
        ChunkKeyEncoding().encode((1.0,))


def test_encoding_is_a_frozen_value():
    encoding = ChunkKeyEncoding.zmeta()
    assert encoding == eval(repr(encoding)) == pickle.loads(pickle.dumps(encoding))
    assert hash(encoding) == hash(ChunkKeyEncoding.zmeta()) and encoding != ChunkKeyEncoding() and encoding != "x"
    with pytest.raises(AttributeError, match="frozen"):
        encoding.prefix = "c"
    with pytest.raises(AttributeError, match="frozen"):
        del encoding.prefix
    with pytest.raises(TypeError, match="no field shape"):
        encoding.replace(shape=1)
