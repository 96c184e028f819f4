"""The strict JSON reader and the one writer that all formats share."""
import json
import tracemalloc

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of, json_documents
from zcore.formats.json_documents import (
    MAX_DEPTH,
    MAX_NBYTES,
    Document,
    around_shape,
    check_attributes,
    render_json,
    render_json_lines,
    render_shape,
)
from zcore.text import object_memory
from zcore.text.object_memory import room_for


def read(raw, **options):
    return Document(raw, "a/b", "doc.json", **options)


@each(("raw", "found"), [
    (b"", "incomplete"), (b" \n", "incomplete"), (b'{"a": ', "incomplete"), (b'{"a": "b', "incomplete"),
    (b'{"a": "\\', "incomplete"), (b'{"a": {"b": []}', "incomplete"), (b'{"a": tru', "incomplete"),
    (b'{"a": "]}', "incomplete"), (b"{} {}", "mistake"), (b"{}x", "mistake"), (b'{"a": 1,}', "mistake"),
    (b"{'a': 1}", "mistake"), (b"{a: 1}", "mistake"), (b'{"a": 01}', "mistake"), (b'{"a": .5}', "mistake"),
    (b'{"a": +1}', "mistake"), (b'{"a": 0x1}', "mistake"), (b'{"a": "\t"}', "mistake"), (b'{"a": "\\x"}', "mistake"),
    (b'{"a": // no\n1}', "mistake"), (b'{"a": True}', "mistake"), (b'{"a": nan}', "mistake"),
    (b'{"a": 1e999}', "1e999 is beyond"), (b'{"a": -1e999}', "beyond the range"),
    (b'{"a": ' + b"9" * 5000 + b"}", "more than 4300 digits"),
    (b'{"a": NaN}', "NaN is not JSON"), (b'{"a": -Infinity}', "-Infinity is not JSON"), (b"\0" * 100, "mistake"),
    (b"[]", "expected an object, found []"), (b"null", "found null"), (b'"a"', 'found "a"'), (b"1", "found 1"),
    (b"\xef\xbb\xbf{}", "byte order mark"), ("{}".encode("utf-16"), "UTF-8"), (b'{"a": "\xff"}', "UTF-8"),
    (b'{"a": "\xed\xa0\x80"}', "UTF-8"), (b'{"a": "\xc0\xaf"}', "UTF-8"),
])
def test_document_that_is_not_strict_json_is_refused(raw, found):
    """ZM-META-14"""
    with pytest.raises(MetadataError) as caught:
        read(raw)
    assert str(caught.value).startswith("a/b/doc.json: ")
    assert found in str(caught.value)
    assert (caught.value.path, caught.value.document, caught.value.member) == ("a/b", "doc.json", None)


@pytest.mark.parametrize("raw", [b'{"a": 1, "a": 2}', b'{"b": {"a": 1, "c": 2, "a": 1}}', b'{"a": 1, "\\u0061": 1}'])
def test_member_named_twice_is_refused(raw):
    """ZM-META-14"""
    with pytest.raises(MetadataError, match="member 'a': expected once, found twice"):
        read(raw)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded_before_it_is_parsed(opening, closing):
    def nested(depth):
        return b'{"x":' + opening * (depth - 1) + b"0" + closing * (depth - 1) + b"}"

    assert read(nested(MAX_DEPTH)).members
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(MetadataError, match="nested"):
            read(nested(depth))
    with pytest.raises(MetadataError, match="nested"):
        read(opening * 100_000)


def test_brackets_in_strings_and_in_breadth_are_no_nesting():
    text = "[{" * 200 + '\\"' * 3
    assert read(json.dumps({text: [[i] for i in range(200)], "b": "\\"}).encode()).members[text][199] == [199]


@pytest.mark.parametrize("value", [b"[]", *[
    pytest.param(value, marks=pytest.mark.slow) for value in (b"{}", b'{"a":1}', b'["a"]', b"[[1,2]]")]])
def test_values_that_would_take_too_much_memory_are_not_made(value):
    raw = b'{"a":[' + b",".join([value] * (2**24 // (len(value) + 1))) + b"]}"
    message = (rf"x/y: expected values that take at most {room_for(len(raw))} bytes of memory, found some \d+, in a "
               rf"text of {len(raw)} bytes")
    tracemalloc.start()
    try:
        with pytest.raises(MetadataError, match=message):
            Document(raw, "x", "y")
        assert tracemalloc.get_traced_memory()[1] < 3 * len(raw)
    finally:
        tracemalloc.stop()


def test_values_that_could_not_be_read_again_are_not_written(monkeypatch):
    for module in (json_documents, object_memory):
        monkeypatch.setattr(module, "MAX_OBJECTS_NBYTES", 1 << 22)
    with pytest.raises(ValueError, match="expected values that take at most 4194304 bytes of memory, found more"):
        render_json_lines({"a": [{"a": 0}] * 20_000})


def _shared(leaf, join, n=40):
    for _ in range(n):
        leaf = join(leaf)
    return leaf


SHARED = {
    "lists": lambda: _shared([], lambda a: [a, a]),
    "tuples": lambda: _shared((1,), lambda a: (a, a)),
    "objects": lambda: _shared({}, lambda a: {"x": a, "y": a}),
    "text": lambda: ["x" * 10**6] * 200,
    "shared text": lambda: _shared(["x" * 1000], lambda a: [a, a], 30),
    "names": lambda: [{"x" * 10**5: 0}] * 2000,
    "digits": lambda: [10**4000] * 50_000,
    "small ones": lambda: [[[]] * 2000] * 10**6,
}


@pytest.mark.thinned(2, "zarr_format", "name")
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if name in ("digits", "small ones") else name for name in SHARED])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_values_that_share_parts_are_refused_before_they_are_written(name, zarr_format):
    """There are 2**40 of them. To write them would take far more memory than they do."""
    value = SHARED[name]()
    group = zcore.group(zarr_format=zarr_format, attributes={"b": 1})
    tracemalloc.start()
    try:
        for call in (lambda: zcore.group(zarr_format=zarr_format, attributes={"a": value}),
                     lambda: group.create_array("x", shape=3, dtype="i1", attributes={"a": value}),
                     lambda: group.attrs.update(a=value), lambda: group.attrs.update(b=value)):
            with pytest.raises(ValueError, match="expected values that take at most|at most so many are read"):
                call()
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert dict(group.attrs) == {"b": 1} and list(group) == []


def test_parts_may_be_shared():
    part = {"x": list(range(30_000)), "y": ("z", 1.5, None)}
    value = [part, part, {"p": part}]
    members = {"attributes": {"a": value}}
    assert json.loads(render_json_lines(members)) == json.loads(json.dumps(members))
    deep = _shared(part, lambda a: [a], MAX_DEPTH - 4)
    render_json_lines({"a": [deep]})
    with pytest.raises(ValueError, match="nested"):
        render_json_lines({"a": [deep, [deep]]})


@pytest.mark.parametrize("make", [
    lambda: "[{,:" * 4_000_000, lambda: [i / 7 for i in range(800_000)], lambda: list(range(1_900_000)),
], ids=["signs-in-a-string", "reals", "integers"])
def test_long_documents_are_read(make):
    raw = json.dumps({"a": make()}).encode()
    assert len(raw) > 14_000_000 and list(Document(raw, "x", "y").members) == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format, n", [(2, 200_000), (3, 100_000)])
def test_consolidated_metadata_of_the_largest_size_are_read(zarr_format, n):
    """The documents of arrays, as zarr-python indents them: as many as a document holds."""
    format = format_of(zarr_format)
    one = json.loads(format.render_array(format.new_array((1000, 1000), "f4", (100, 100))))
    attributes = {"units": "K", "long_name": "temperature", "_ARRAY_DIMENSIONS": ["y", "x"], "valid_range": [0.0, 9.5]}
    members = {"/.zarray": one, "/.zattrs": attributes} if zarr_format == 2 else {"": {**one, "attributes": attributes}}
    below = {f"x{i}{end}": value for i in range(n) for end, value in members.items()}
    raw = json.dumps({"a": {"metadata": below}}, indent=2).encode()
    assert 0.8 * MAX_NBYTES < len(raw) <= MAX_NBYTES
    assert len(Document(raw, "x", "y").members["a"]["metadata"]) == len(below)


@pytest.mark.parametrize("raw", [b'"' + b'\\"' * 300_000, b"[" * 65 + b'"\\' * 150_000, b'["' * 200_000])
def test_hostile_strings_are_scanned_in_linear_time(raw):
    """A quadratic scan of these would not end within the patience of any test run."""
    with pytest.raises(MetadataError):
        read(b"[" * 70 + raw)


@pytest.mark.parametrize("raw", [b'{"a": ' + b'"\\""' * 200_000, b'"' * 800_000, b'{"a": [' + b'"b", ' * 160_000])
def test_hostile_strings_take_no_more_memory_than_they_have_bytes(raw):
    """A refusal looks at the nesting, without an object for each string."""
    tracemalloc.start()
    try:
        with pytest.raises(MetadataError):
            read(raw)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(raw)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("window", [1, 2, 3, 7, 1 << 16])
def test_nesting_is_that_outside_of_strings(monkeypatch, window):
    monkeypatch.setattr(object_memory, "WINDOW", window)
    for raw, found in ((b'{"a": [1, {"b": "[[[["}]}', (3, 0)), (b'["\\"[", "\\\\", [', (2, 2)),
                       (b'{"a\\\\\\"[": {', (2, 2)), (b'["[[', (1, 1)), (b"]][", (0, -1)), (b"", (0, 0))):
        assert json_documents._nesting(raw) == found


def test_document_beyond_the_size_limit_is_refused_unread():
    with pytest.raises(MetadataError, match="expected at most 10 bytes, found more"):
        read(b'{"aaaa": 1}', max_nbytes=10)
    assert read(b'{"aaa": 1}', max_nbytes=10).members == {"aaa": 1}


def test_bare_constants_are_read_where_a_format_allows_them():
    members = read(b'{"a": [NaN, Infinity, -Infinity]}', bare_constants=True).members
    assert str(members["a"]) == "[nan, inf, -inf]"


def test_members_are_exact():
    members = read('{"i": 18446744073709551615, "f": 0.1, "z": -0.0, "s": "\\u00e9é\\ud83d\\ude00"}'.encode()).members
    assert members["i"] == 2**64 - 1 and members["f"] == 0.1 and str(members["z"]) == "-0.0" and members["s"] == "éé😀"


@pytest.mark.parametrize(("method", "arguments"), [
    ("required", ()), ("integers", (0,)), ("integer", (0, 9)), ("choice", (("x", "y"),)),
])
def test_missing_member_is_named(method, arguments):
    with pytest.raises(MetadataError, match="^a/b/doc.json: member 'gone' is missing$") as caught:
        getattr(read(b"{}"), method)("gone", *arguments)
    assert caught.value.member == "gone"


@each(("value", "found"), [
    *[(value, value) for value in (
        "1", "[1.0]", "[true]", "[-1]", '["1"]', "[null]", "[1, [2]]", "null", '"12"', "{}", "[NaN]",
    )],
    (str([-1] * 99), str([-1] * 99)[:77] + "..."),
])
def test_list_of_integers_is_exactly_that(value, found):
    with pytest.raises(MetadataError) as caught:
        read(f'{{"m": {value}}}'.encode(), bare_constants=True).integers("m", 0)
    assert str(caught.value) == f"a/b/doc.json: member 'm': expected a list of integers >= 0, found {found}"


@each("value", ["-1", "10", "1.0", "true", '"5"', "null", "[5]"])
def test_integer_is_exactly_that(value):
    with pytest.raises(MetadataError, match="member 'm': expected an integer from 0 to 9, found"):
        read(f'{{"m": {value}}}'.encode()).integer("m", 0, 9)
    with pytest.raises(MetadataError, match="member 'm': expected 3, found"):
        read(f'{{"m": {value}}}'.encode()).integer("m", 3, 3)


@each("value", ['"z"', '"X"', '"x "', "1", "null", '["x"]'])
def test_choice_is_one_of_the_choices(value):
    with pytest.raises(MetadataError, match="member 'm': expected one of x, y, found"):
        read(f'{{"m": {value}}}'.encode()).choice("m", ("x", "y"))


def test_place_of_a_document_in_messages():
    assert [Document(b"{}", path, "zarr.json").where() for path in ("", "/", "a", "a/", "/data/x.zarr")] == [
        "zarr.json", "zarr.json", "a/zarr.json", "a/zarr.json", "/data/x.zarr/zarr.json",
    ]


def test_written_form_is_sorted_indented_ascii():
    """ZM-META-15, ZM-ATTR-03, V2-ARR-10"""
    assert render_json({}) == b"{}"
    assert render_json({"foo": 42, "bar": 4.2, "é": ["\u20ac", None, True]}) == (
        b'{\n    "bar": 4.2,\n    "foo": 42,\n'
        b'    "\\u00e9": [\n        "\\u20ac",\n        null,\n        true\n    ]\n}'
    )


@each(("members", "error"), [
    ({1: 2}, TypeError), ({"a": [{None: 1}]}, TypeError), ({"a": {"b": {True: 1}}}, TypeError),
    ({"a": {1, 2}}, TypeError),
    ({"a": b"x"}, TypeError), ({"a": object()}, TypeError), ({"a": 1j}, TypeError),
])
def test_what_json_would_alter_or_cannot_hold_is_not_written(members, error):
    with pytest.raises(error):
        render_json(members)


def test_a_value_that_json_lacks_is_shown_with_its_type():
    with pytest.raises(TypeError) as caught:
        render_json({"a": b"x"})
    assert str(caught.value) == "b'x' of type bytes is no JSON value"     # json may add notes, which say where
    with pytest.raises(TypeError, match=r"^attribute 'a': b'x' of type bytes is no JSON value$"):
        check_attributes({"b": 1, "a": [b"x"]}, {})
    with pytest.raises(TypeError, match=r"^attribute 'a': array\(.*\) of type ndarray is no JSON value$"):
        check_attributes({"a": np.zeros(1, "c8")}, {})
    with pytest.raises(TypeError, match="^attribute 'a': names of a JSON object are strings, not 1$"):
        check_attributes({"a": {1: 2}}, {})


def test_what_could_not_be_read_again_is_not_written():
    def nested(depth):
        value = {}
        for _ in range(depth - 1):
            value = {"a": value}
        return value

    assert read(render_json(nested(MAX_DEPTH))).members == nested(MAX_DEPTH)
    with pytest.raises(ValueError, match="nested"):
        render_json(nested(MAX_DEPTH + 1))
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        render_json({"a": endless})


def test_bare_constants_in_some_members_only():
    """V3-DOC-05"""
    raw = b'{"a": {"x": [NaN]}, "b": "NaN", "c": [1.5, {"Infinity": -0.0}]}'
    assert read(raw, bare_constants=("a",)).has_constants
    with pytest.raises(MetadataError, match="member 'a': NaN, Infinity and -Infinity without quotes are not JSON"):
        read(raw, bare_constants=("b",))
    assert not read(b'{"a": 1.5}', bare_constants=("a",)).has_constants


def test_document_within_another_one():
    inner = Document.within(read(b'{"m": {"a": -1}}'), {"a": -1}, "m")
    with pytest.raises(MetadataError, match="a/b/doc.json: member 'm.a': expected an integer from 0 to 9") as caught:
        inner.integer("a", 0, 9)
    assert caught.value.member == "m.a" and str(inner.error(None, "x")) == "a/b/doc.json: member 'm': x"

    def lacking():
        raise UnsupportedError("nothing", feature="f")

    with pytest.raises(UnsupportedError, match="a/b/doc.json: member 'm.a': nothing"):
        inner.checked("a", lacking)


def test_written_form_with_a_line_for_each_member():
    """V3-DOC-03, V3-DOC-05"""
    assert render_json_lines({"é": [1, {"c": 0.5}], "a": {}}) == b'{\n  "\\u00e9": [1, {"c": 0.5}],\n  "a": {}\n}'
    assert render_json({"a": float("nan")}) == b'{\n    "a": NaN\n}'
    for number in (float("nan"), float("inf"), np.float32("-inf")):
        with pytest.raises(ValueError, match="not JSON"):
            render_json_lines({"a": [number]})
        with pytest.raises(ValueError, match="not JSON"):
            render_json_lines({"a": [number], "b": number}, ("b",))
        with pytest.raises(ValueError, match="attribute 'a': NaN and infinities are not JSON"):
            check_attributes({"a": {"b": [number]}}, {"a": {"b": [0]}, "b": number})
    assert render_json_lines({"a": 1, "b": [float("nan")]}, ("b",)) == b'{\n  "a": 1,\n  "b": [NaN]\n}'
    check_attributes({"a": {"b": [float("-inf")]}, "c": 1}, {"a": {"b": [float("-inf")]}})
    for wrong in ({1: 2}, {"a": b""}, {"a": {2: 3}}):
        with pytest.raises(TypeError):
            render_json_lines(wrong)
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        render_json_lines({"a": endless})
    with pytest.raises(ValueError, match="nested"):
        check_attributes({"a": endless}, {})


def test_integers_of_too_many_digits_are_named():
    """Python's own bound: neither read, nor written, nor taken for a NaN."""
    digits = "1" * 5000
    for text in (f'{{"a": {digits}}}', f'{{"a": [-{digits}]}}'):
        for constants in (False, True, ("a",)):
            with pytest.raises(MetadataError, match="n/d: an integer has more than 4300 digits") as caught:
                Document(text.encode(), "n", "d", constants)
            assert "NaN" not in str(caught.value)
    value = {"a": [10**5000]}
    for write in (render_json, render_json_lines, lambda value: render_json_lines(value, ("a",)),
                  lambda value: check_attributes(value, {}), lambda value: check_attributes(value, {"a": 1})):
        with pytest.raises(ValueError, match="an integer has more than 4300 digits"):
            write(value)
    assert Document(render_json({"a": 10**4299}), "n", "d").members == {"a": 10**4299}


def test_a_shape_is_written_into_the_text_around_it(monkeypatch):
    nested = {"shape": [0], "text": '\n    "shape": [\n        0\n    ]'}
    members = {"dtype": [["shape", "<i4"]], "filters": [nested, {"": nested}], '"shape': [0], "zarr_format": 2}
    around = around_shape(members)
    for shape in ((0,), (3,), (2**62, 0, 17), (1,) * 64):
        assert render_shape(around, shape) == render_json({**members, "shape": shape})
    monkeypatch.setattr(json_documents, "MAX_NBYTES", 2**20)
    with pytest.raises(ValueError, match="are read"):
        render_shape(around_shape({"a": "b" * (2**20 - 100)}), (2**62,) * 64)


@pytest.mark.skipif(np.dtype("g") == np.dtype("d"), reason="the longest float is Python's")
def test_a_float_that_python_does_not_have():
    with pytest.raises(TypeError, match="attribute 'a'.*no JSON value"):
        zcore.create_group(zcore.MemoryStore(), attributes={"a": np.longdouble(1.5)})
