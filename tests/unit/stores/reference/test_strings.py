"""Strings of reference sets as they may be written: with escapes, and as base64, against what Python reads in them."""
import base64
import json
from binascii import a2b_base64

import pytest

from tests.each import each
from zcore.errors import ReferenceFormatError
from zcore.stores.reference.document import read_document

ESCAPES = [r"\/", r"\"", r"\\", r"\b\f\n\r\t", r"é", r"É", r"€", r"\ud834\udd1e", r"\uDBFF\uDFFF", r"\ud800\udc00",
           r"\u0000", r"", r"\u007f\u0080", r"߿ࠀ\uffff", r"\\u00e9", "\\u00e9", "\\u20AC\\u20ac", "\\u07ff\\u0800",
           r"a\/b\/c", "𝄞", r"\ud834\udd1e\ud834\udd1e"]
NO_ESCAPES = [r"\x", r"\u", r"\u12", r"\u123", r"\u12g4", r"\u 123", r"\U0041", r"\0", "\\\n",
              r"\é", r"\u00e", r"\u-123"]
HALVES = [r"\ud800", r"\udc00", r"\udc00\ud800", r"\ud800\ud800", r"\ud800A", r"\ud800\n", r"\ud800\u0041",
          r"\ud800\\udc00", r"\ud800x\udc00"]


@each("text", ESCAPES)
@each("around", ["", "more"])
def test_escapes_wherever_a_string_stands(text, around):
    """RF-DOC-01"""
    string = f'"{around}{text}{around}"'
    expected = json.loads(string)
    table = read_document(f'{{"a": {string}, "b": [{string}, 1, 2], "c": [{string}]}}'.encode())
    assert table.find(b"a") == expected.encode()
    assert table.find(b"b") == (expected, 1, 2) and table.find(b"c") == (expected, 0, None)
    assert len(table.targets) == 1
    name = json.loads(f'"k{text}y"')
    if "\0" not in name:
        assert read_document(f'{{"k{text}y": "x"}}'.encode()).find(name.encode()) == b"x"


@pytest.mark.parametrize(("texts", "message"), [(NO_ESCAPES, "not JSON"), (HALVES, "half of a pair")])
def test_what_is_no_escape(texts, message):
    """RF-DOC-01"""
    for text in texts:
        for document in (f'{{"a": "{text}"}}', f'{{"{text}": "a"}}', f'{{"a": ["{text}"]}}', f'{{"a": "x{text}y"}}'):
            with pytest.raises(ReferenceFormatError, match=message):
                read_document(document.encode())


def test_members_may_be_written_with_escapes():
    """RF-V1-01"""
    table = read_document(rb'{"\u0076ersion": 1, "ref\u0073": {"a\/b": "x"}}')
    assert table.find(b"a/b") == b"x" and len(table) == 1
    with pytest.raises(ReferenceFormatError, match="'refs' is there twice"):
        read_document(rb'{"version": 1, "refs": {}, "ref\u0073": {}}')
    with pytest.raises(ReferenceFormatError, match="'a/b' is there twice"):
        read_document(rb'{"a/b": "x", "a\/b": "y"}')


@pytest.mark.parametrize("n", range(9))
@pytest.mark.parametrize("escaped", [False, True])
def test_base64_of_any_length(n, escaped):
    """RF-V0-02"""
    for first in range(0, 256, 5):
        data = bytes((first + 29 * i) % 256 for i in range(n))
        text = base64.b64encode(data).decode()
        if escaped:
            text = "".join([f"\\u{ord(c):04x}" if i % 2 else c.replace("/", "\\/") for i, c in enumerate(text)])
        assert read_document(f'{{"a": "base64:{text}", "b": "behind"}}'.encode()).find(b"a") == data


def test_what_is_base64_is_what_python_takes_for_it():
    """RF-V0-02: every text of up to five characters of a few."""
    texts = [""]
    for _ in range(5):
        texts += [text + sign for text in texts if len(text) == len(texts[-1]) for sign in "Az/=*"]
    for text in texts:
        try:
            expected = a2b_base64(text, strict_mode=True)
            if len(text) % 4:
                raise ValueError("a sign of padding too many, which Python takes up to 3.12")
        except ValueError:
            with pytest.raises(ReferenceFormatError, match="not base64"):
                read_document(f'{{"a": "base64:{text}"}}'.encode())
        else:
            assert read_document(f'{{"a": "base64:{text}"}}'.encode()).find(b"a") == expected
