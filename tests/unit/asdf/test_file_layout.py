"""The parts of an ASDF file, on bytes."""
import struct

import pytest

from tests.each import each
from zcore.asdf import file_layout
from zcore.errors import AsdfFormatError, UnsupportedError


@pytest.mark.parametrize(("data", "version", "end"), [
    (b"#ASDF 1.0.0\n", "1.0.0", 12),
    (b"#ASDF 1.0.0\r\n%YAML 1.1\n", "1.0.0", 13),
    (b"#ASDF \t 1.0.3-rc1+x\n\n", "1.0.3", 20),
])
def test_header(data, version, end):
    """AS-HDR-01: token, white space, version, either newline."""
    assert file_layout.parse_header(data) == (version, end)


@each("data", [
    b"", b"#ASDF", b"#ASDF 1.0.0", b"#ASDF\n", b"#ASDF1.0.0\n", b"#ASDF 1.0\n", b"#ASDF one\n", b"#asdf 1.0.0\n",
    b"\n#ASDF 1.0.0\n", b"\xef\xbb\xbf#ASDF 1.0.0\n", b"#ASDF 1.0.0 x\n", b"#ASDF 1.0.0\r%YAML 1.1\n",
    b"#ASDF 1.0." + b"0" * 5000 + b"\n", b"#ASDF " + b" " * 2000 + b"1.0.0\n",
])
def test_header_that_is_none(data):
    """AS-HDR-01, AS-HDR-03: no token, no version, no newline within a bound, a byte order mark."""
    with pytest.raises(AsdfFormatError) as caught:
        file_layout.parse_header(data)
    assert caught.value.offset == 0 and caught.value.member == "header"


def test_header_of_another_version():
    """AS-HDR-02: other major versions are refused, a later minor one is read with a warning."""
    for version in (b"0.1.0", b"2.0.0", b"10.0.0"):
        with pytest.raises(UnsupportedError, match=version.decode()):
            file_layout.parse_header(b"#ASDF " + version + b"\n")
    with pytest.warns(UserWarning, match=r"1\.2\.0"):
        assert file_layout.parse_header(b"#ASDF 1.2.0\n") == ("1.2.0", 12)


def test_comments():
    """AS-COM-01: all lines that begin with #; a blank line ends them."""
    data = b"#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\r\n# mine \xff\n#\n\n# not this"
    assert file_layout.parse_comments(data, 12) == (["#ASDF_STANDARD 1.5.0", "# mine \ufffd", "#"], 45)
    assert file_layout.parse_comments(b"#ASDF 1.0.0\n# the last", 12) == (["# the last"], 22)


@pytest.mark.parametrize(("comments", "standard"), [
    (["#ASDF_STANDARD 1.6.0"], "1.6.0"),
    (["# x", "#ASDF_STANDARD  1.2.0  ", "#ASDF_STANDARD 1.6.0"], "1.2.0"),
    ([], "1.0.0"),
    (["#ASDF_STANDARD six", "# #ASDF_STANDARD 1.6.0"], "1.0.0"),
])
def test_version_of_the_standard(comments, standard):
    """AS-COM-02: the comment ASDF_STANDARD; 1.0.0 without one, or when it cannot be read."""
    assert file_layout.standard_of(comments) == standard


@pytest.mark.parametrize(("text", "end"), [
    (b"%YAML 1.1\n---\na: 1\n...\n", 23),
    (b"%YAML 1.1\r\n---\r\na: 1\r\n...\r\nrest", 27),
    (b"%YAML 1.1\n---\na: |\n  ...\n  x\n ...\n...\n\xd3BLK", 38),
    (b"%YAML 1.1\n---\na: ... \n....\n...x\n...\n...\n", 36),
])
def test_end_of_a_tree(text, end):
    """AS-TREE-03, AS-TREE-04: a line of three dots at its beginning, and nothing else on it."""
    assert file_layout.find_tree_end(text, 0, True) == file_layout.find_tree_end(text, 0, False) == end


def test_end_of_a_tree_at_the_end_of_the_file():
    """AS-TREE-03: the end of the file stands for the last newline."""
    for text in (b"%YAML 1.1\n---\n...", b"%YAML 1.1\n---\n...\r"):
        assert file_layout.find_tree_end(text, 0, True) == len(text)
        assert file_layout.find_tree_end(text, 0, False) is None
    for text in (b"%YAML 1.1\n---\n", b"%YAML 1.1\n---\n..", b"%YAML 1.1\n---\na...\n", b"%YAML 1.1\n--- a\n...b\n"):
        assert file_layout.find_tree_end(text, 0, True) is None


@each("line", [b"", b"---\n", b"%TAG ! x\n", b"%YAML\n", b"%YAML 1.1", b"a: 1\n", b" %YAML 1.1\n"])
def test_tree_begins_with_the_version_of_yaml(line):
    """AS-TREE-01, AS-TREE-12: nothing else may stand there."""
    file_layout.check_tree_start(b"x%YAML 1.1\r\n", 1)
    with pytest.raises(AsdfFormatError) as caught:
        file_layout.check_tree_start(b"x" + line, 1)
    assert caught.value.offset == 1 and caught.value.member == "tree"


def header(header_size=48, flags=0, compression=b"", allocated=10, used=10, data_size=10, checksum=bytes(16)):
    return file_layout.render_block_header(header_size, flags, compression, allocated, used, data_size, checksum)


def test_block_header_byte_by_byte():
    """AS-BLK-01: every field at its place, in big-endian order."""
    data = header(60, 2**31, b"lz4", 0x0102030405060708, 7, 2**40, bytes(range(16)))
    assert data[:4] == b"\xd3BLK" and data[4:6] == b"\0\x3c" and data[6:10] == b"\x80\0\0\0" and data[10:14] == b"lz4\0"
    assert data[14:22] == bytes(range(1, 9)) and data[22:30] == b"\0\0\0\0\0\0\0\x07"
    assert data[30:38] == struct.pack(">Q", 2**40) and data[38:54] == bytes(range(16)) and data[54:] == bytes(12)
    with pytest.warns(UserWarning, match="0x80000000"):
        found = file_layout.parse_block_header(data, 100, 10**6)
    assert found == (100, 60, 2**31, b"lz4", 0x0102030405060708, 7, 2**40, bytes(range(16)))
    assert found.data_offset == 166 and found.end == 166 + 0x0102030405060708 and not found.is_streamed


@each(("fields", "member"), [
    ({"header_size": 48, "used": 11}, "used_size"),
    ({"used": 2**64 - 1, "allocated": 2**64 - 1}, "used_size"),
    ({"used": 947, "allocated": 947, "data_size": 947}, "used_size"),
    ({"data_size": 11}, "data_size"),
    ({"data_size": 9}, "data_size"),
    ({"data_size": 2**64 - 1}, "data_size"),
    ({"data_size": 2**63, "compression": b"zlib"}, "data_size"),
    ({"header_size": 60000}, "header_size"),
    ({"flags": 1, "compression": b"zlib"}, "compression"),
])
def test_block_header_whose_fields_contradict_each_other(fields, member):
    """AS-BLK-03, AS-BLK-04, AS-BLK-08, AS-STR-03: sizes that cannot be; all arithmetic is exact."""
    file_layout.parse_block_header(header(), 0, 1000)
    with pytest.raises(AsdfFormatError) as caught:
        file_layout.parse_block_header(header(**fields), 0, 1000)
    assert caught.value.member == member and caught.value.offset == 0


def test_block_header_that_is_too_short():
    """AS-BLK-02: fewer than 48 bytes."""
    data = bytearray(header())
    for n in range(48):
        data[4:6] = struct.pack(">H", n)
        with pytest.raises(AsdfFormatError, match="at least 48"):
            file_layout.parse_block_header(data, 0, 1000)
    for n in range(4, 54):
        with pytest.raises(AsdfFormatError, match="in the block header"):
            file_layout.parse_block_header(header()[:n], 0, n)
    with pytest.raises(AsdfFormatError, match="expected a block"):
        file_layout.parse_block_header(b"\xd3BLX" + header()[4:], 0, 1000)


def test_sizes_of_a_streamed_block():
    """AS-STR-01: the content reaches to the end of the file, whatever the sizes are."""
    for sizes in ({}, {"allocated": 0, "used": 0, "data_size": 0}, {"used": 2**64 - 1, "data_size": 3}):
        found = file_layout.parse_block_header(header(flags=1, checksum=bytes(range(16)), **sizes), 30, 100)
        assert found.used == found.allocated == found.data_size == 16 and found.end == 100
        assert found.checksum == bytes(16) and found.is_streamed


@pytest.mark.parametrize(("text", "offsets"), [
    (b"%YAML 1.1\n--- [2043, 16340]\n...\n", [2043, 16340]),
    (b"%YAML 1.1\r\n---\r\n- 2043\r\n- 16340\r\n...\r\n", [2043, 16340]),
    (b"---\n- 0\n...", [0]),
    (b"--- [1,\n  100,\n  1000 ]\n...\n\0\0\0", [1, 100, 1000]),
    (b"%YAML 1.1\n--- [9223372036854775807]\n...\n", [2**63 - 1]),
])
def test_block_index(text, offsets):
    """AS-IDX-01: flow or block style, either newline, zeros behind; the line of YAML's version may be missing."""
    assert file_layout.parse_block_index(b"#ASDF BLOCK INDEX\n" + text) == offsets
    assert file_layout.parse_block_index(file_layout.render_block_index(offsets)) == offsets


@each("text", [
    b"", b"%YAML 1.1\n", b"--- []\n...\n", b"--- [1, 2]\n...\n", b"--- [100, 10]\n...\n", b"--- [10, 10]\n...\n",
    b"--- [1, 54]\n...\n", b"--- [-1]\n...\n", b"--- [0100]\n...\n", b"--- [1_0]\n...\n", b"--- [0x10]\n...\n",
    b"--- [1.0]\n...\n", b"--- [a]\n...\n", b"--- {a: 1}\n...\n", b"--- 10\n...\n", b"--- [10]\n...\nx",
    b"--- [10]\n", b"--- [10]\n...\n--- [20]\n...\n", b"--- [10, [20]]\n...\n", b"---\n-10\n...\n", b"--- [1 0]\n...\n",
    b"--- [99999999999999999999]\n...\n",
])
def test_block_index_that_is_not_believed(text):
    """AS-IDX-02, AS-IDX-07: anything else than a list of offsets that increase by a header at least is no index."""
    assert file_layout.parse_block_index(b"#ASDF BLOCK INDEX\n" + text) is None
    assert file_layout.parse_block_index(b"#ASDF BLOCK INDEX " + text) is None


def test_block_index_of_a_million_entries_is_read_in_one_pass():
    offsets = list(range(0, 10**8, 1000))
    assert file_layout.parse_block_index(file_layout.render_block_index(offsets)) == offsets
    assert file_layout.parse_block_index(file_layout.render_block_index(offsets)[:-3] + b"x") is None


def test_space_in_what_is_no_block_index_is_read_in_one_pass():
    """Many blanks between the last number and what is no bracket: work that grows with their square takes hours."""
    for space in (b" ", b"\n"):
        raw = b"#ASDF BLOCK INDEX\n%YAML 1.1\n--- [1" + space * 2**22 + b"-\n...\n"
        assert file_layout.parse_block_index(raw) is None
