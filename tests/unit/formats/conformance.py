"""What every format has to do; its tests subclass `FormatConformance` and say which format it is."""
import itertools
import json

import numpy as np
import pytest

from zcore.errors import MetadataError, NodeNotFoundError, UnsupportedError, ZcoreError
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


class FormatConformance:
    """Tests of one format.

    `name` is that in the table of formats. A subclass may override `format` instead.
    """

    name = None

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
        if any(format.names.signs):
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
        assert format.parse_group(raw, "g") == read

    def test_a_node_of_the_other_kind_is_not_found(self, format, array):
        if format.array_document != format.group_document:
            return
        with pytest.raises(NodeNotFoundError, match="a/b is an array, not a group") as info:
            format.parse_group(format.render_array(array), "a/b")
        assert (info.value.path, info.value.format) == ("a/b", format.name)
        with pytest.raises(NodeNotFoundError, match="the root is a group, not an array"):
            format.parse_array(format.render_group(format.new_group({})), "")

    def test_metadata_of_another_format_are_told_apart(self, format, array):
        assert not format.describes(array.replace(zarr_format="none"))

    # Attributes

    def test_attributes(self, format, array):
        if format.has_inline_attributes:
            array = format.new_array((3,), "<i4", (2,), attributes=ATTRIBUTES)
            assert format.parse_array(format.render_array(array), "").attributes == ATTRIBUTES
            if format.has_groups:
                group = format.new_group(ATTRIBUTES)
                assert format.parse_group(format.render_group(group), "").attributes == ATTRIBUTES
            return
        assert format.parse_attributes(format.render_attributes(ATTRIBUTES), "") == ATTRIBUTES
        assert format.parse_attributes(None, "") == {}
        assert format.parse_array(format.render_array(array), "").attributes is None
        for raw in (b"", b"[]", b'{"a": 1', b"\xff{}"):
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
        assert dict(format.parse_group(raw, "").consolidated) == below

    # Damage

    def test_document_that_is_cut_off(self, format):
        for document, raw, _ in self.documents(format):
            for n in range(len(raw)):
                with pytest.raises(MetadataError) as info:
                    format.parse_node(document, raw[:n], "a/b")
                assert (info.value.path, info.value.document) == ("a/b", document)

    def test_document_that_is_no_object(self, format):
        for document, _, _ in self.documents(format):
            for raw in (b"null", b"[]", b"3", b'"text"', b"{}x", b"\xef\xbb\xbf{}", b"\xff", b"[" * 10000):
                with pytest.raises(MetadataError):
                    format.parse_node(document, raw, "")

    @pytest.mark.parametrize("value", [None, -1, 1.5, "x", [], [[]], {}, {"name": []}, True, 2**70, [-1, -1], ["1"]],
                             ids=repr)
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

    # The table

    def test_the_table_has_its_line(self, format):
        line = FORMATS[format.name]
        assert format is format_of(format.name) and type(format).__module__ == line.module
