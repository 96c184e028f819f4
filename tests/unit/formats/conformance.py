"""What every format has to do; its tests subclass `FormatConformance` and say which format it is."""
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.each import each
from zcore.errors import MetadataError, UnsupportedError, ZcoreError
from zcore.formats import FORMATS, format_of
from zcore.formats.base import Format
from zcore.model.metadata import ArrayMetadata, GroupMetadata

ATTRIBUTES = {"unit": "m", "list": [1, -2.5, None, {"deep": True}], "é": ""}
ARRAYS = {
    "integers": ((7, 5), "<i4", (3, 5), 0),
    "big-endian": ((100,), ">f8", (30,), -0.5),
    "nan": ((3, 3, 3), "<f4", (2, 2, 2), float("nan")),
    "no elements": ((0, 3), "|u1", (1, 2), 255),
    "complex": ((4,), "<c8", (4,), 1 - 2j),
    "booleans": ((4,), "|b1", (9,), True),
}

# Wrong values as JSON, by the kind of member. The array is one of 10 × 10 in chunks of 5 × 5.
DEEP, DIGITS, LONE = "[" * 60 + "]" * 60, "9" * 4000, '"\\ud800"'
WRONG = {
    "lengths": [
        "[-1, 10]", "[10.0, 10]", "[-0.0, 1]", "[1e1, 10]", "[1E1, 10]", "[true, 10]", '["10", 10]', "[null, 10]",
        "[[10], 10]", "-10", "null", '"10,10"', "{}", "true", "[9223372036854775808, 1]", "[0, 9223372036854775808]",
        "[4294967296, 4294967296]", f"[{DIGITS}, 1]", DEEP],
    "length": ["NaN", "Infinity", "-Infinity"],
    "chunk lengths": [
        "[0, 5]", "[-5, 5]", "[5.0, 5]", "[true, 5]", '["5", 5]', "[5]", "[5, 5, 5]", "[]", "null", "true", "{}",
        "[[5], [5]]", '"auto"', "[9223372036854775807, 5]", "[3037000500, 3037000500]", "[2147483648, 2147483647]",
        f"[{DIGITS}, 5]", DEEP],
    "version": ["1", "2", "3", "2.0", "3.0", '"2"', '"3"', "true", "null", "[2]", "{}"],
    "separator": ['""', '"-"', '"//"', "null", "0", "1", '["."]', '["/"]', '"\\\\"', '"../"'],
    "type": [
        "null", "4", "true", "{}", "[]", '["<i4"]', '[["a"]]', '[["a", "<i4", "x"]]', '[["a", "<i4"], ["a", "<i4"]]',
        '[["", "<i4"]]', '[["a", "<i4", [0]]]', '[["a", "<i4", [true]]]', '[[1, "<i4"]]', DEEP],
    "type of NumPy": ['"<M8"', '"<M8[x]"', '"<m8[x]"', '"<M8[generic]"', '[["a", "<M8[generic]"]]'],
}
# Types without a portable size.
UNKNOWN = {
    "type": ['"O"', '"|O8"', '"<i3"', '"<x4"', '"<f16"', '">c32"', '"f4,i4"', '"<f4,<i4"', '"|S2147483647"',
             '"|V99999999999"', '""', '"foo"', LONE, json.dumps("<" * 10000)],
    "type of NumPy": ['[["a", "|O"]]', '[["a", "<i3"]]', '[["a", "|V16777216"], ["b", "|u1"]]',
                      '[["a", "<i4", [2147483648, 2147483648]]]'],
}
# Fill values, as JSON, that a type does not hold.
WRONG_FILLS = {
    "|b1": ["2", '"0"', '"true"', "NaN", "[]"], "|i1": ["128", "-129"], "|u1": ["256", "-1"],
    "<i4": ["2147483648", "-2147483649", "0.5", '"0.5"', '""', '"0x1"', "NaN", "Infinity", '"NaN"', "[]", "[0]",
            "[0, 0]", "{}", "1e10", "1e300", DIGITS, DEEP],
    "<i8": ["9223372036854775808"], "<u8": ["18446744073709551616"], "<f2": ["65520"], "<f4": ["1e39", "-1e39"],
    "<f8": ['"nan"', '"inf"', '"1.5 m"', '"1_5"', '"+Infinity"', '"0x7fc00000"', DIGITS[:400], "[1.0]", "{}"],
    "<c8": ["[1.0]", "[1.0, 2.0, 3.0]", '[1.0, "x"]', "[1.0, null]", "[[1], 2]", "[1e39, 0]", "[true, 0]", "{}"],
    "|S3": ["{}", LONE], "<U3": ["{}", "[]", '["a"]'], "|V3": ["1", "0.0", '"\\u0100"', "{}"],
    **dict.fromkeys(["<M8[D]", "<m8[s]"], ["0.0", "0.5", "true", '"1"', '"now"', '"2016-99-99"', "9223372036854775808",
                                           "NaN", "[]"]),
    (("a", "<i4"),): ["[0]", "[1]", "{}"],
}
# What makes any document no strict JSON.
DAMAGES = [
    lambda raw: b"[]", lambda raw: b"null", lambda raw: b"3", lambda raw: b'"text"', lambda raw: b"",
    lambda raw: b"\xff", lambda raw: raw.rstrip()[:-1], lambda raw: raw[:len(raw) // 2], lambda raw: raw + b"x",
    lambda raw: raw + raw, lambda raw: b"\xef\xbb\xbf" + raw, lambda raw: b"\0" * 200,
    lambda raw: raw.decode().encode("utf-16"), lambda raw: raw.replace(b'"', b'"\xff', 1),
    lambda raw: raw.replace(b"}", b",}"), lambda raw: raw.replace(b'"', b"'"),
    *[lambda raw, value=value: raw.rstrip()[:-1] + b', "x": ' + value + b"}" for value in (
        b"1e999", b"9" * 5000, b"[" * 100000, b"[" * 100000 + b"]" * 100000,
        b'{"a":' * 100000 + b"1" + b"}" * 100000)],
    lambda raw: b"{" * 10**6, lambda raw: b'{"' * 10**6, lambda raw: b'"' * 10**6, lambda raw: b"[" + b"{}," * 10**5,
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2**70, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4) | st.sampled_from([
        "|S3", "|O", "<f8", "F", "delta", "vlen-utf8", "zlib", "packbits", "bytes", "struct", "r8", "regular", "int4"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(
        st.text(max_size=3) | st.sampled_from(["id", "level", "dtype", "name", "configuration", "must_understand",
                                               "codecs", "fields"]), children, max_size=3),
    max_leaves=8)


class FormatConformance:
    """Tests of one format.

    `name` is that in the table of formats. A subclass may override `format` instead. `rich` are members of documents
    with all that a format has, by the name of the document; those are damaged, too, and their arrays are of 10 × 10 in
    chunks of 5 × 5. `members` are those with lengths, types and so on: the keys of `WRONG`, the member, and the text
    around the value. `mandatory` are the members that arrays and groups must have. `wrong` and `unknown` are pairs of a
    member and a text which this format alone refuses; the error of an unknown one is an `UnsupportedError`.
    """

    name = None
    rich = ()
    members = {}
    mandatory = ()
    wrong = ()
    unknown = ()

    @pytest.fixture
    def format(self):
        return format_of(self.name)

    @pytest.fixture
    def array(self, format):
        return format.new_array((7, 5), "<i4", (3, 5), 0)

    @staticmethod
    def documents(format):
        """Return a new node's document of each kind: (name of the document, its text, metadata)."""
        array = format.new_array((7, 5), "<i4", (3, 5), 0)
        found = [(format.array_document, format.render_array(array), array)]
        if format.has_groups:
            group = format.new_group({})
            found.append((format.group_document, format.render_group(group), group))
        return found

    # What it says of itself

    def test_it_is_a_format_with_a_name_and_documents(self, format):
        assert isinstance(format, Format) and format.title and repr(format) == f"<format {format.title}>"
        names = [format.array_document, format.group_document, format.attributes_document, format.chunk_directory,
                 format.consolidated_document]
        names = [name for name in dict.fromkeys(names) if name is not None]
        assert format.array_document in names and all([name and "/" not in name for name in names])
        assert format.has_groups == (format.group_document is not None)
        assert format.has_inline_attributes == (format.attributes_document is None)
        assert format.has_groups or format.consolidated_document is None

    def test_no_node_has_the_name_of_a_document_where_names_are_reserved(self, format):
        if format.names.is_suspect(format.array_document):
            assert format.names.fault(format.array_document)
        assert format.names.fault("temperature") is None and format.names.spelled("a/b") == "a/b"

    def test_every_capability_is_one_of_the_contract(self, format):
        """A misspelled attribute would say nothing."""
        said = {name for cls in type(format).__mro__[:-1] if cls not in Format.__mro__ for name in vars(cls)
                if not name.startswith("_")}
        assert said <= set(dir(Format))

    # Documents

    @pytest.mark.parametrize("shape, dtype, chunks, fill_value", ARRAYS.values(), ids=ARRAYS)
    def test_document_of_an_array(self, format, shape, dtype, chunks, fill_value):
        array = format.new_array(shape, dtype, chunks, fill_value)
        raw = format.render_array(array)
        read = format.parse_node(format.array_document, raw, "a")
        assert type(array) is type(read) is ArrayMetadata and format.describes(array) and format.describes(read)
        assert read == array and format.parse_array(raw, "a") == array
        assert format.render_array(read) == raw
        assert (array.shape, array.chunk_shape, array.dtype) == (shape, chunks, np.dtype(dtype))
        assert array.fill_bytes == np.array(fill_value, dtype).tobytes()
        assert format.as_dtype(dtype) == array.dtype

    def test_fill_value_may_be_left_open(self, format):
        array = format.new_array((3,), "<i4", (2,))
        assert format.parse_array(format.render_array(array), "") == array

    def test_document_of_a_group(self, format):
        if not format.has_groups:
            with pytest.raises(NotImplementedError):
                format.new_group()
            return
        group = format.new_group({})
        raw = format.render_group(group)
        read = format.parse_node(format.group_document, raw, "g")
        assert type(group) is type(read) is GroupMetadata and format.describes(group) and format.describes(read)
        assert read.consolidated is None and format.render_group(read) == raw

    def test_metadata_of_another_format_are_told_apart(self, format, array):
        assert not format.describes(array.replace(zarr_format="none"))

    # Attributes

    def test_attributes(self, format, array):
        if format.has_inline_attributes:
            array = format.new_array((3,), "<i4", (2,), attributes=ATTRIBUTES)
            assert format.parse_array(format.render_array(array), "").attributes == ATTRIBUTES
            if format.has_groups:
                group = format.new_group(ATTRIBUTES)
                assert format.parse_node(format.group_document, format.render_group(group), "").attributes == ATTRIBUTES
            return
        assert format.parse_attributes(format.render_attributes(ATTRIBUTES), "") == ATTRIBUTES
        assert format.parse_attributes(None, "") == {}
        assert format.parse_array(format.render_array(array), "").attributes is None
        for raw in (b"", b"[]", b'"a"', b"1", b"nul", b"{", b'{"a": 1', b'{"a": 1, "a": 2}', b"\xff{}",
                    b"\xef\xbb\xbf{}"):
            with pytest.raises(MetadataError) as info:
                format.parse_attributes(raw, "a/b")
            assert (info.value.path, info.value.document) == ("a/b", format.attributes_document)
        with pytest.raises(TypeError):
            format.render_attributes({1: 2})

    # Chunks

    def test_keys_of_chunks(self, format, array):
        grid = list(itertools.product(*map(range, array.grid_shape)))
        keys = [array.chunk_keys.encode(coords) for coords in grid]
        assert len(set(keys)) == len(grid) == array.n_chunks
        assert [array.chunk_keys.decode(key, array.ndim) for key in keys] == grid
        documents = {format.array_document, format.group_document, format.attributes_document,
                     format.consolidated_document}
        assert documents.isdisjoint(keys)
        if format.chunk_directory is not None:
            assert all([key.startswith(format.chunk_directory + "/") for key in keys])

    def test_another_array_may_have_the_same_keys(self, format, array):
        if format.has_chunk_key_encoding:
            other = format.new_array((9, 9), "<f4", (4, 4), chunk_key_encoding=array.chunk_keys)
            assert other.chunk_keys == array.chunk_keys
        else:
            with pytest.raises(ValueError):
                format.new_array((9, 9), "<f4", (4, 4), chunk_key_encoding=array.chunk_keys)

    def test_separator_that_the_document_leaves_open(self, format, array):
        if not format.has_dimension_separator:
            with pytest.raises(NotImplementedError):
                format.with_separator(array, "/")
            return
        told = format.with_separator(array, "/")
        assert told.chunk_keys.separator == "/" != array.chunk_keys.separator
        assert format.with_separator(told, ".") is told
        assert format.parse_array(format.render_array(told), "") == told

    # Capabilities: what `new_array` takes

    def test_shards(self, format):
        def new():
            return format.new_array((8, 8), "<i4", (2, 2), shards=(4, 4))

        if format.has_shards:
            assert new().chunk_shape == (4, 4) and new().codecs[-1].name == "sharding_indexed"
            assert format.parse_array(format.render_array(new()), "") == new()
        else:
            with pytest.raises(ValueError):
                new()

    def test_dimension_names(self, format, array):
        if format.has_dimension_names:
            array = format.new_array((7, 5), "<i4", (3, 5), dimension_names=("y", None))
            assert format.parse_array(format.render_array(array), "").dimension_names == ("y", None)
            return
        with pytest.raises(ValueError):
            format.new_array((7, 5), "<i4", (3, 5), dimension_names=("y", "x"))
        with pytest.raises(ValueError):
            format.render_array(array.replace(dimension_names=("y", "x")))

    def test_checksum(self, format, array):
        assert (array.codecs[-1].name == "crc32c") == format.has_checksum
        if format.has_checksum:
            assert "crc32c" not in [codec.name for codec in format.new_array((7,), "<i4", (3,), checksum=False).codecs]

    def test_compressors(self, format, array):
        if format.only_compressor is not None:
            assert format.only_compressor in [codec.name for codec in array.codecs]
            with pytest.raises(ValueError):
                format.new_array((7,), "<i4", (3,), compressors=())
        else:
            codecs = format.new_array((7,), "<i4", (3,), compressors=()).codecs
            assert [codec.name for codec in codecs] == ["bytes", *["crc32c"] * format.has_checksum]
        if format.has_own_codec_names:
            assert format.new_array((7,), "<i4", (3,), compressors={"id": "zlib", "level": 1}).codecs != array.codecs

    def test_setting_that_no_format_has_is_refused(self, format):
        with pytest.raises((ValueError, TypeError)):
            format.new_array((7,), "<i4", (3,), no_such_setting=1)

    # Consolidated metadata

    def test_consolidated_metadata(self, format, array):
        if not format.has_groups:
            return
        group = format.new_group({})
        below = {"a": array if format.has_inline_attributes else array.replace(attributes={"x": 1})}
        raw = format.render_group(group)
        assert not format.may_have_copy(raw) and not format.has_copy(raw)
        if format.consolidated_document is not None:
            raw = format.render_consolidated(group.replace(consolidated=below))
            assert dict(format.parse_consolidated(raw, "").consolidated) == below
            with pytest.raises(MetadataError):
                format.parse_consolidated(raw[:-1], "")
            return
        try:
            raw = format.render_group(group.replace(consolidated=below))
        except ValueError:
            return  # the format has no place for them, and says so
        assert format.may_have_copy(raw) and format.has_copy(raw)
        assert dict(format.parse_node(format.group_document, raw, "").consolidated) == below

    # Damage

    def test_document_that_is_cut_off(self, format):
        for document, raw, _ in self.documents(format):
            for n in range(len(raw)):
                with pytest.raises(MetadataError, match="the document is incomplete") as info:
                    format.parse_node(document, raw[:n], "a/b")
                assert (info.value.path, info.value.document) == ("a/b", document)

    def _raw(self, format):
        """Return (name, text) of the documents that are damaged."""
        return [(document, raw) for document, raw, _ in self.documents(format)] + [
            (document, json.dumps(members).encode()) for document, members in self.rich]

    @each("damage", DAMAGES)
    def test_document_that_is_not_strict_json(self, format, damage):
        """V3-DOC-03, V3-DOC-05, V3-DOC-07, ZM-META-01, ZM-META-14"""
        for i, (document, raw) in enumerate(self._raw(format)):
            if i and len(damage(raw)) > 10 * len(raw):
                continue     # it does not depend on the document
            with pytest.raises(MetadataError) as caught:
                format.parse_node(document, damage(raw), "x")
            assert (caught.value.path, caught.value.document) == ("x", document)
            assert str(caught.value).startswith(f"x/{document}: ") and len(str(caught.value)) < 400
        if format.consolidated_document is not None:
            with pytest.raises(MetadataError):
                format.parse_consolidated(damage(format.render_consolidated(format.new_group({}))), "x")

    def test_document_that_is_too_long(self, format):
        raw = b" " * 2**27 + b"1"
        with pytest.raises(MetadataError, match=f"expected at most {2**27} bytes, found more"):
            format.parse_node(self._raw(format)[0][0], raw, "x")
        if format.consolidated_document is not None:
            with pytest.raises(MetadataError, match=f"expected at most {2**27} bytes, found more"):
                format.parse_consolidated(raw, "x")

    def test_member_that_is_named_twice(self, format):
        """V3-DOC-04, ZM-META-14"""
        for document, raw in self._raw(format):
            first = next(iter(json.loads(raw)))
            with pytest.raises(MetadataError, match="expected once, found twice") as caught:
                format.parse_node(document, raw.rstrip()[:-1] + f', "{first}": 1}}'.encode(), "x")
            assert caught.value.member == first

    @pytest.mark.filterwarnings("ignore")
    def test_damage_at_any_place_ends_in_an_error_of_zcore_or_in_metadata(self, format):
        @given(st.data())
        def check(data):
            document, raw = data.draw(st.sampled_from(self._raw(format)))
            start, removed = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 3))
            _check(format, document, raw[:start] + data.draw(st.binary(max_size=3)) + raw[start + removed:])

        check()

    @pytest.mark.filterwarnings("ignore")
    def test_any_json_in_any_member_ends_in_an_error_of_zcore_or_in_metadata(self, format):
        @given(st.data())
        def check(data):
            document, raw = data.draw(st.sampled_from(self._raw(format)))
            members = json.loads(raw)
            changes = data.draw(st.dictionaries(st.sampled_from(sorted(members)), JSON, min_size=1, max_size=3))
            _check(format, document, json.dumps(members | changes).encode())

        check()

    @each("value", [None, -1, 1.5, "x", [], [[]], {}, {"name": []}, True, 2**70, [-1, -1], ["1"]])
    @pytest.mark.filterwarnings("ignore")
    def test_member_of_the_wrong_kind(self, format, value):
        """It is refused, or means something that can be written again; it is never another exception."""
        for document, raw, metadata in self.documents(format):
            for member in json.loads(raw):
                damaged = json.dumps({**json.loads(raw), member: value}).encode()
                try:
                    read = format.parse_node(document, damaged, "")
                except (MetadataError, UnsupportedError):
                    continue
                render = format.render_array if type(read) is ArrayMetadata else format.render_group
                assert type(read) is type(metadata) and type(render(read)) is bytes

    @pytest.mark.filterwarnings("ignore")
    def test_byte_that_is_changed(self, format):
        for document, raw, _ in self.documents(format):
            for i in range(len(raw)):
                for byte in (0, ord("9"), ord("}"), raw[i] ^ 1, raw[i] ^ 0x80):
                    try:
                        format.parse_node(document, raw[:i] + bytes([byte]) + raw[i + 1:], "")
                    except ZcoreError:
                        pass

    # Hostile members

    def _arrays(self, format):
        """Yield members of documents of arrays of 10 × 10 in chunks of 5 × 5, as JSON."""
        yield _texts_of(format.render_array(format.new_array((10, 10), "<i4", (5, 5))))
        for members in [members for _, members in self.rich if "shape" in members]:
            yield _texts_of(json.dumps(members))

    def _texts(self, kinds, own):
        """Return (member, text) of all values of these kinds."""
        return [(member, around.replace("{}", text)) for kind, (member, around) in self.members.items()
                for text in kinds.get(kind, ()) if text != str(self.name)] + list(own)

    def test_wrong_member_is_named(self, format):
        """V2-ARR-02 to V2-ARR-07, V2-DT-01, V2-DT-05, V2-ST-01, V2-ST-03, V2-FV-03, V3-DOC-06, V3-META-01, V3-META-03,
        V3-GRID-01, V3-KEY-03, V3-RGRID-03, ZM-META-02 to ZM-META-04, ZM-META-06, ZM-META-07, ZM-META-10, ZM-META-11,
        ZM-META-12, ZM-META-13, ZM-CHK-12
        """
        self._refuses(format, MetadataError, 400, self._texts(WRONG, self.wrong))

    def test_unknown_type_is_named(self, format):
        """V2-DT-02, V2-DT-03, V2-ST-05, V3-EXT-08, ZM-META-06"""
        for error in self._refuses(format, UnsupportedError, 200, self._texts(UNKNOWN, self.unknown)):
            assert error.feature

    def _refuses(self, format, error, max_length, cases):
        found = []

        @each("member, text", cases or [(None, None)], ids=lambda value: str(value)[:40])
        def check(member, text):
            for members in self._arrays(format) if member else ():
                with pytest.raises(error) as caught:
                    format.parse_array(_joined({**members, member: text}), "x.zarr")
                _is_about(caught.value, format, member)
                assert len(str(caught.value)) < max_length
                found.append(caught.value)

        check()
        return found

    @each("dtype", WRONG_FILLS)
    def test_fill_value_that_the_type_does_not_hold_is_named(self, format, dtype):
        """V2-FV-02 to V2-FV-09, V3-META-07, V3-FV-01 to V3-FV-09, V3-XDT-05, ZM-META-07"""
        members = _texts_of(format.render_array(
            format.new_array((4,), list(dtype) if type(dtype) is tuple else dtype, (2,))))
        for text in WRONG_FILLS[dtype] if "fill_value" in members else ():
            with pytest.raises(MetadataError) as caught:
                format.parse_array(_joined({**members, "fill_value": text}), "x.zarr")
            _is_about(caught.value, format, "fill_value")
            assert len(str(caught.value)) < 400, text

    def test_version_of_a_group(self, format):
        """V2-GRP-01, V3-GRP-01"""
        for text in WRONG["version"] if format.has_groups and "version" in self.members else ():
            members = _texts_of(format.render_group(format.new_group({})))
            if text != str(format.name):
                with pytest.raises(MetadataError, match=f"^x/{format.group_document}: member 'zarr_format'"):
                    format.parse_node(format.group_document, _joined({**members, "zarr_format": text}), "x")

    def test_each_mandatory_member(self, format):
        """V2-ARR-01, V2-GRP-01, V3-META-07, V3-META-09, V3-GRP-01, ZM-META-01"""
        for (document, raw, _), names in zip(self.documents(format), self.mandatory, strict=False):
            for name in names:
                members = json.loads(raw)
                del members[name]
                with pytest.raises(MetadataError, match=f"a/{document}: member '{name}' is missing$") as caught:
                    format.parse_node(document, json.dumps(members).encode(), "a")
                assert (caught.value.path, caught.value.document, caught.value.member) == ("a", document, name)

    def test_too_many_dimensions_are_unsupported(self, format):
        many = dict([self.members[kind] for kind in ("lengths", "chunk lengths") if kind in self.members])
        for members in self._arrays(format) if many else ():
            with pytest.raises(UnsupportedError, match="65 dimensions"):
                format.parse_array(_joined(members | {
                    member: around.replace("{}", str([1] * 65)) for member, around in many.items()}), "x")

    # The table

    def test_the_table_has_its_line(self, format):
        line = FORMATS[format.name]
        assert format is format_of(format.name) and type(format).__module__ == line.module


def _texts_of(raw):
    """Return the members of a document, each as JSON."""
    return {name: json.dumps(value) for name, value in json.loads(raw).items()}


def _joined(members):
    """Return the document of members as JSON."""
    return ("{" + ", ".join([f'"{name}": {text}' for name, text in members.items()]) + "}").encode()


def _is_about(error, format, member):
    assert str(error).startswith(f"x.zarr/{format.array_document}: member '{member}': "), error
    if isinstance(error, MetadataError):
        assert (error.path, error.document, error.member) == ("x.zarr", format.array_document, member)


def look_at(store):
    """Open a node, and do all that costs no more than a few objects; read an element at each end of an array."""
    a = zcore.open(store)
    if isinstance(a, zcore.Group):
        return str((a, list(a), a.attrs))
    str((a, a.info_complete(), a.metadata, a.codecs, a.nbytes, a.nchunks, a.cdata_shape, a.fill_value))
    assert a.nchunks_initialized == 0
    if a.size and not a.dtype.hasobject:
        for index in ((0,) * a.ndim, (-1,) * a.ndim):
            assert a[index].tobytes() == np.frombuffer(a.metadata.fill_bytes, a.dtype)[0].tobytes()
    assert a[(slice(5, 5),) * a.ndim].size == (0 if a.ndim else 1)
    if 0 < a.nbytes <= 10**6:
        assert a[...].shape == a.shape
    return a


def _check(format, document, raw):
    """Read a document; what could be read must come back the same after it was written."""
    try:
        node = format.parse_node(document, raw, "x")
        if getattr(node, "consolidated", None):
            dict(node.consolidated)
        if format.name in FORMATS:
            look_at(zcore.MemoryStore({document: raw}))
    except ZcoreError as error:
        assert len(str(error)) < 600
        return
    if type(node) is GroupMetadata:
        format.render_group(node)
    elif node.ndim:    # `__zmeta__` reads other arrays, and does not write them
        written = format.render_array(node)
        assert format.parse_array(written, "x") == node and format.render_array(node) == written
