"""Reference sets of version 0 and 1, without templates: what they say, what is refused, and what their targets give."""
import base64
import json
import os
import pickle
import re
import sys
import threading

import numpy as np
import pytest

import zcore
from tests.both_ways import brought
from tests.each import each
from zcore.errors import ReferenceFormatError, ReferenceTargetError, UnsupportedError
from zcore.kernel.refs.table import ReferenceTable
from zcore.stores.reference.store import ReferenceStore


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(range(100)))
    return tmp_path


def opened(folder, document, **options):
    path = folder / "refs.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return ReferenceStore(path, **options)


@pytest.mark.parametrize("wrap", [lambda refs: refs, lambda refs: {"version": 1, "refs": refs}])
def test_values(folder, wrap):
    """RF-DOC-01, RF-DOC-02, RF-V0-01, RF-V0-02, RF-V0-03, RF-V0-04, RF-V1-02, RF-V1-03, RF-V1-05, RF-V1-06, RF-V1-07,
    RF-V1-08, RF-STO-01, RF-STO-04, RF-URL-06"""
    store = opened(folder, wrap({
        "text": "data", "umlaut": "ä", "binary": "base64:AAEC", "object": {"zarr_format": 2, "a": [1, {"b": None}]},
        "all": ["data.bin"], "part": ["data.bin", 10, 5], "none": ["gone.bin", 3, 0], "braces": "{{u}}",
        "part/of/it": ["data.bin", 99, 1]}))
    assert store.get("text") == b"data" and store.get("umlaut") == "ä".encode() and store.get("binary") == b"\0\1\2"
    assert store.get("object") == b'{"zarr_format":2,"a":[1,{"b":null}]}' and store.get("braces") == b"{{u}}"
    assert store.get("all") == bytes(range(100)) and store.getsize("all") == 100
    assert store.get("part") == bytes(range(10, 15)) and store.get("none") == b"" and store.getsize("none") == 0
    assert store.get("part", (1, 2)) == b"\x0b\x0c" and store.get("part", (4, 9)) == b"\x0e"
    assert store.get("part", (None, 2)) == b"\x0d\x0e" and store.get("part", (7, None)) == b""
    assert store.get("all", (None, 2)) == b"\x62\x63" and store.get("text", (1, 2)) == b"at"
    assert store.get("other") is None and store.getsize("other") is None and not store.exists("tex")
    names = ["all", "binary", "braces", "none", "object", "part", "text", "umlaut"]
    assert store.list_dir("") == (names, ["part/"], ())
    assert list(store.list_prefix("part/")) == ["part/of/it"] and store.list_dir("nowhere/")[:2] == ([], [])


def test_an_array(folder):
    """RF-STO-03"""
    values = np.arange(50, dtype="<u2")
    (folder / "data.bin").write_bytes(b"head" + values.tobytes())
    for document in (
            {".zgroup": {"zarr_format": 2}, "x/.zarray": {
                "zarr_format": 2, "shape": [50], "chunks": [20], "dtype": "<u2", "compressor": None, "filters": None,
                "fill_value": 7, "order": "C"},
             "x/0": ["data.bin", 4, 40], "x/2": ["data.bin", 44, 40]},
            {"zarr.json": {"zarr_format": 3, "node_type": "group"}, "x/zarr.json": {
                "zarr_format": 3, "node_type": "array", "shape": [50], "data_type": "uint16", "fill_value": 7,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
             "x/c/0": ["data.bin", 4, 40], "x/c/2": ["data.bin", 44, 40]}):
        store = opened(folder, document)
        array = zcore.open(store)["x"]
        assert array[:20].tolist() == list(range(20)) and (array[20:40] == 7).all()
        assert array[40:].tolist() == list(range(20, 30))
        with pytest.raises(zcore.ReadOnlyError):
            zcore.open(store, mode="r+")["x"][0] = 1


@pytest.mark.parametrize(("document", "message"), [
    ("[]", "expected a JSON object"), ("", "expected a JSON object"), ('{"a": "b"', "expected ','"),
    ('{"a": "b"} x', "nothing behind"), ('{"a": "b",}', "expected a string"), ('{"a" "b"}', "expected ':'"),
    ('{"a": "b', "does not end"), ('{"a": "\n"}', "control character"), ('{"a": "\\x"}', "not JSON"),
    ('{"a": "\\ud800"}', "surrogates"), ('{"a": ]}', "expected a value"), ('{"a": [}', "closes"),
    ('{"a": 1}', "expected a string, an object"), ('{"a": null}', "expected a string"),
    ('{"a": true}', "expected a string"), ('{"a": []}', "expected .url."), ('{"a": [1]}', "expected .url."),
    ('{"a": [null]}', "expected .url."), ('{"a": ["u", 1]}', "found two items"), ('{"a": ["u", 1, 2, 3]}', "expected"),
    ('{"a": ["u", -5, 1]}', "whole numbers"), ('{"a": ["u", 1.0, 1]}', "whole numbers"),
    ('{"a": ["u", 1e3, 1]}', "whole numbers"), ('{"a": ["u", "1", 1]}', "whole numbers"),
    ('{"a": ["u", true, 1]}', "whole numbers"), ('{"a": ["u", 01, 1]}', "whole numbers"),
    ('{"a": ["u", 9223372036854775808, 1]}', "below 2..63"), ('{"a": ["u", 1, 99999999999999999999]}', "below 2..63"),
    ('{"a": ["u", 9223372036854775807, 9223372036854775807]}', "ends beyond"),
    ('{"a": "base64:AAE"}', "not base64"), ('{"a": "base64:A*=="}', "not base64"), ('{"a": "base64:AA==A"}', "base64"),
    ('{"a": "x", "a": "y"}', "twice"), ('{"a": {"b": nul}}', "not JSON"), ('{"/a": "x"}', "is no key"),
    ('{"a//b": "x"}', "is no key"), ('{"a/../b": "x"}', "is no key"), ('{"": "x"}', "is no key"),
    ('{"a//": "x"}', "is no key"), ('{"/": "x"}', "is no key"), ('{"a/": "x", "a\\/0": "y"}', "twice"),
    ('{"a\\u0000": "x"}', "is no key"), ('{"version": 2, "refs": {}}', "expected 1"),
    ('{"version": "1", "refs": {}}', "expected 1"), ('{"version": 1.0, "refs": {}}', "expected 1"),
    ('{"version": true, "refs": {}}', "expected 1"), ('{"version": 1, "refs": []}', "an object of references"),
    ('{"version": 1, "refs": {}, "refs": {}}', "twice"), ('{"version": 1, "a": 1, "\\u0061": 2}', "'a' is there twice"),
    ('{"a": ' + "[" * 10**5, "nested deeper"),
    ('{"a": ' + '{"a":' * 10**5, "nested deeper"),
])
def test_documents_that_are_none(folder, document, message):
    """RF-DOC-01, RF-DOC-02, RF-V0-06, RF-V1-02, RF-V1-04, RF-V1-06, RF-V1-09, RF-V1-10: where they break, they say."""
    with pytest.raises(ReferenceFormatError, match=message) as caught:
        opened(folder, document)
    assert "refs.json" in str(caught.value)


def outcome(folder, document):
    try:
        return sorted(opened(folder, document).to_v0().items())
    except ReferenceFormatError as error:
        return re.sub(r"byte \d+ of", "byte of", str(error))


@pytest.mark.parametrize("refs", [
    "{}", '{"a": "x", "b": ["u", 9223372036854775806, 1], "c": {"d": [null]}}', '{"a": "x", "a": "y"}', "[]",
    '{"a": 1}', '{"a": ["u", 9223372036854775808, 0]}', '{"a": ["u", 9223372036854775807, 1]}',
    '{"a": ["u", 99999999999999999999, 1]}', '{"a": ["u", 100000000000000000, 999999999999999999]}',
    '{"a": ["u", 01, 1]}', '{"a/.__zc_tmp.b": "x"}', '{"a/..": "x"}',
    '{"a/...": "x"}', '{"a\\u0000": "x"}', '{"a": "base64:A"}',
    '{"a": ' + '{"b":' * 62 + "1" + "}" * 63, '{"a": ' + '{"b":' * 63 + "1" + "}" * 64])
def test_a_document_says_the_same_whatever_stands_first(folder, refs):
    """References behind the version are read as the document is gone over, others after that."""
    document = f'{{"version": 1, "refs": {refs}}}'
    assert outcome(folder, document) == outcome(folder, f'{{"refs": {refs}, "version": 1}}')


@each("n", [31, 32, 33, 63, 64, 65, 300, 5000])
def test_sets_of_many_references(n):
    """Room is made by the size of the first references, which may be unlike the others."""
    refs = {f"x/{i}": ["u" * (1 if i % 7 else 50), i, 10**(i % 18)] for i in range(n)} | {"text": "t" * 10**5}
    assert ReferenceStore({"version": 1, "refs": refs}).to_v0() == refs


def test_each_place_of_what_ends_a_string():
    """Strings are looked at by eight bytes at once."""
    for n in range(40):
        for sign in ("\\", '"', "\n", "ä", "\x7f", " "):
            for at in range(n):
                text = "." * at + sign + "." * (n - at - 1)
                document = {"a": text, "b": [text]}
                assert ReferenceStore(document).get("a") == text.encode()
                assert ReferenceStore(document).to_v0()["b"] == [text]


def test_bytes_that_are_no_text(folder):
    """RF-DOC-01"""
    (folder / "refs.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ReferenceFormatError, match="byte 7.*UTF-8"):
        ReferenceStore(folder / "refs.json")
    (folder / "refs.json").write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(ReferenceFormatError, match="zstd"):
        ReferenceStore(folder / "refs.json")
    with pytest.raises(zcore.StoreError, match="nothing") as caught:
        ReferenceStore(folder / "nothing.json")
    assert isinstance(caught.value, FileNotFoundError)
    os.mkfifo(folder / "fifo.json")     # nothing is waited for
    with pytest.raises(zcore.StoreError, match="no.* regular file"):
        ReferenceStore(folder / "fifo.json")


def test_version_may_be_a_key(folder):
    """RF-DOC-03, RF-DOC-05, RF-V1-01, RF-V0-05"""
    store = opened(folder, {"version": "text", "a": ["{{u}}"]})
    assert store.get("version") == b"text" and store.to_v0()["a"] == ["{{u}}"]
    with pytest.warns(UserWarning, match="without a version"):
        assert opened(folder, {"refs": {"a": "b"}}).get("a") == b"b"
    with pytest.warns(UserWarning, match="1 others"):
        assert opened(folder, {"version": 1, "more": [], "refs": {"a": "b"}}).get("a") == b"b"
    assert list(opened(folder, {"version": 1}).list()) == []


@pytest.mark.parametrize("key", ["s/", "g\\/s\\/"])
@pytest.mark.parametrize("value", ['"base64:AAAAAAAADEA="', '["data.bin", 8, 8]'])
def test_the_chunk_of_a_scalar_as_virtualizarr_names_it(folder, key, value):
    """RF-V0-06: no index, and the separator is there nonetheless."""
    (folder / "data.bin").write_bytes(bytes(8) + np.float64(3.5).tobytes())
    path = json.loads(f'"{key}"')
    document = {"zarr_format": 2, "shape": [], "chunks": [], "dtype": "<f8", "fill_value": None, "order": "C",
                "filters": None, "compressor": None, "dimension_separator": "."}
    store = opened(folder, f'{{"version": 1, "refs": {{"{key}": {value}, "{key}.zarray": {json.dumps(document)}}}}}')
    assert zcore.open(store, path=path[:-1])[()] == 3.5
    assert sorted(store.list()) == sorted(store.to_v0()) == [path + ".zarray", path + "0"]


def test_a_target_that_only_the_caller_knows(folder):
    """RF-V1-09"""
    store = opened(folder, {"version": 1, "refs": {"a": [None, 3, 2], "b": ["data.bin", 0, 1]}}, target="data.bin")
    assert store.get("a") == b"\3\4" and store.get("b") == b"\0"


def test_a_target_that_is_missing_or_short_is_no_missing_key(folder):
    """RF-URL-05, RF-URL-07"""
    store = opened(folder, {"short": ["data.bin", 90, 50], "huge": ["data.bin", 0, 2**62], "gone": ["gone.bin"],
                            "folder": ["."], "nul": ["a\0b", 0, 1]})
    for key, message in (("short", "has 100"), ("huge", "has 100"), ("gone", "No such file"), ("folder", "no file"),
                         ("nul", "NUL")):
        with pytest.raises(ReferenceTargetError, match=message) as caught:
            store.get(key)
        assert caught.value.key == key and caught.value.url is not None
    assert store.get("short", (0, 10)) == bytes(range(90, 100))
    os.mkfifo(folder / "fifo")
    with pytest.raises(ReferenceTargetError, match="no file"):
        opened(folder, {"a": ["fifo"]}).get("a")


def test_what_a_set_may_point_to(folder, tmp_path_factory):
    """RF-URL-01, RF-URL-02, RF-URL-03, RF-URL-04, RF-URL-08"""
    other = tmp_path_factory.mktemp("other")
    (other / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(other / "secret")
    (folder / "with space").write_bytes(b"space")
    inside = folder.as_uri() + "/with%20space"
    refs = {"absolute": [str(other / "secret")], "uri": [(other / "secret").as_uri()], "link": ["link"],
            "up": ["../" + other.name + "/secret"], "etc": ["file:///etc/passwd"], "in": [inside],
            "plain": ["with%20space"], "remote": ["s3://bucket/a"], "unknown": ["gopher://h/a"], "chain": ["zip://a::data.bin"]}
    store = opened(folder, refs)
    assert store.get("in") == b"space"
    for key in ("absolute", "uri", "link", "up", "etc"):
        with pytest.raises(ReferenceTargetError, match=r"allowed=\['/"):
            store.get(key)
    with pytest.raises(ReferenceTargetError, match="No such file"):
        store.get("plain")
    for key, what in {"unknown": "no client for the scheme 'gopher'", "chain": "a chained URL"}.items():
        with pytest.raises(UnsupportedError, match=what):
            store.get(key)
    allowing = opened(folder, refs, allowed=[str(other)])
    assert [allowing.get(key) for key in ("absolute", "uri", "link", "up")] == [b"secret"] * 4
    with pytest.raises(ReferenceTargetError, match=r"allowed=\['s3://bucket/'\]"):
        allowing.get("remote")
    nothing = opened(folder, {**refs, "data": "inline"}, allowed=[])
    assert nothing.get("data") == b"inline"
    for key in ("in", "absolute", "remote"):
        with pytest.raises(ReferenceTargetError, match="would permit it"):
            nothing.get(key)
    with pytest.raises(ReferenceTargetError, match="base="):
        ReferenceStore({"a": ["data.bin"]}).get("a")
    assert ReferenceStore({"a": ["data.bin", 1, 1]}, base=str(folder)).get("a") == b"\1"


def test_changes_stay_in_memory_until_they_are_saved(folder):
    """RF-STO-02, RF-GEN-11, RF-V1-07"""
    store = opened(folder, {"a": ["data.bin", 1, 2], "b": ["data.bin"], "c": "text"}, read_only=False)
    store.set("d/e", b"\xff")
    store.set("c", b"base64:AA==")
    store.erase("b")
    assert not store.set_if_not_exists("d/e", b"") and store.set_if_not_exists("f", b"plain")
    store.set_partial_values([("f", 5, b"!")])
    expected = {"a": ["data.bin", 1, 2], "c": "base64:YmFzZTY0OkFBPT0=", "d/e": "base64:/w==", "f": "plain!"}
    assert store.to_v0() == expected and store.list_dir("")[:2] == (["a", "c", "f"], ["d/"])
    assert json.loads((folder / "refs.json").read_text())["c"] == "text"
    store.save(folder / "saved.json")
    assert json.loads((folder / "saved.json").read_text()) == {"version": 1, "refs": expected}
    again = ReferenceStore(folder / "saved.json")
    assert again.get("c") == b"base64:AA==" and again.get("b") is None and again.to_v0() == expected
    with pytest.raises(zcore.ReadOnlyError):
        again.set("c", b"")
    with pytest.raises(TypeError, match="save it"):
        pickle.dumps(store)
    assert pickle.loads(pickle.dumps(again)).to_v0() == expected
    assert "saved.json" in repr(again) and "4 references" in repr(again)


SEED = {
    "version": 1, "templates": {"u": "server.domain/path", "f": "{{c}}"},
    "gen": [{"key": "gen_key{{i}}", "url": "http://{{u}}_{{i}}", "offset": "{{(i + 1) * 1000}}", "length": "1000",
             "dimensions": {"i": {"stop": 5}}}],
    "refs": {"key0": "data", "key1": ["http://target_url", 10000, 100], "key2": ["http://{{u}}", 10000, 100],
             "key3": ["http://{{f(c='text')}}", 10000, 100]}}


def test_the_example_of_the_specification(tmp_path):
    """RF-GEN-07, RF-GEN-09, RF-GEN-11, RF-TPL-02, RF-TPL-03: exactly its nine references of version 0."""
    pytest.importorskip("jinja2")
    store = ReferenceStore(SEED)
    expected = {
        "key0": "data", "key1": ["http://target_url", 10000, 100], "key2": ["http://server.domain/path", 10000, 100],
        "key3": ["http://text", 10000, 100],
        **{f"gen_key{i}": [f"http://server.domain/path_{i}", 1000 * (i + 1), 1000] for i in range(5)}}
    assert store.to_v0() == expected and store.get("key0") == b"data"
    store.save(tmp_path / "saved.json")
    assert ReferenceStore(tmp_path / "saved.json").to_v0() == expected
    assert ReferenceStore(SEED, template_overrides={"u": "v"}).to_v0()["gen_key1"] == ["http://v_1", 2000, 1000]


def test_generated_references_win_with_a_warning():
    """RF-GEN-08, RF-GEN-10, RF-TPL-11"""
    gen = {"key": "a{{i}}", "url": "u{{i}}", "dimensions": {"i": {"stop": 3}}}
    with pytest.warns(UserWarning, match="1 references that gen makes replace"):
        store = ReferenceStore({"version": 1, "refs": {"a1": "x", "b": ["{{v}}"]}, "gen": [gen]})
    assert store.to_v0() == {"a0": ["u0"], "a1": ["u1"], "a2": ["u2"], "b": ["{{v}}"]}
    with pytest.warns(UserWarning, match="3 references"):
        store = ReferenceStore({"version": 1, "gen": [gen, {**gen, "url": "w"}]})
    assert store.to_v0() == {f"a{i}": ["w"] for i in range(3)}
    with pytest.raises(ReferenceFormatError, match="2 references in all"):
        ReferenceStore({"version": 1, "gen": [gen]}, max_generated=2)
    with pytest.raises(ReferenceFormatError, match="references in all"):
        ReferenceStore({"version": 1, "gen": [{**gen, "dimensions": {"i": {"stop": 10**12}}}]})
    for key in ("/a{{i}}", "{{i}}/../b", ""):
        with pytest.raises(ReferenceFormatError, match="gen: .* is not a key"):
            ReferenceStore({"version": 1, "gen": [{**gen, "key": key}]})
    for broken in ({"gen": {}}, {"gen": [1]}, {"gen": None}, {"templates": []}, {"templates": {"u": 1}},
                   {"templates": {"u": "a"}, "refs": {"a": ["{{w}}"]}}):
        with pytest.raises(ReferenceFormatError):
            ReferenceStore({"version": 1, **broken})


def test_opened_by_name_or_as_a_mapping(folder):
    """A group of arrays in one file, by `zcore.open` alone."""
    values = np.arange(12, dtype="<i4").reshape(3, 4)
    (folder / "data.bin").write_bytes(b"some header" + values.tobytes())
    document = {".zgroup": {"zarr_format": 2}, "x/.zattrs": {"unit": "m"}, "x/.zarray": {
        "zarr_format": 2, "shape": [3, 4], "chunks": [1, 4], "dtype": "<i4", "compressor": None, "filters": None,
        "fill_value": 0, "order": "C"}, **{f"x/{i}.0": ["data.bin", 11 + 16 * i, 16] for i in range(3)}}
    opened(folder, document)
    group = zcore.open(str(folder / "refs.json"))
    assert isinstance(group.store, zcore.ReferenceStore) and list(group) == ["x"]
    assert dict(group["x"].attrs) == {"unit": "m"} and (group["x"][...] == values).all()
    assert (zcore.open_array(folder / "refs.json", path="x")[1:, ::-1] == values[1:, ::-1]).all()
    with pytest.raises(ReferenceTargetError, match="base="):
        zcore.open(document)["x"][...]
    assert (zcore.open(zcore.ReferenceStore(document, base=folder))["x"][:, 1] == values[:, 1]).all()
    with pytest.raises(TypeError, match="reference set, which is read"):
        zcore.open(document, mode="w", shape=3, dtype="i4")
    with pytest.raises(zcore.NotADirectoryStoreError):
        zcore.open(folder / "refs.json", mode="r+")


@pytest.mark.parametrize("threads", [1, 4])
def test_kernel_and_python_read_the_same(folder, threads, monkeypatch):
    """RF-URL-05, RF-URL-07: damage, too, is the same: whatever the kernel cannot read it leaves to Python."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, (40, 30)).astype("<u2")
    made = zcore.create_array(folder / "made", shape=(40, 30), dtype="<u2", chunks=(7, 8), zarr_format=2, fill_value=3)
    made[...] = values
    refs = {".zarray": (folder / "made" / ".zarray").read_text()}
    names = [path.name for path in (folder / "made").iterdir() if path.name[0] != "."]
    with open(folder / "all.bin", "wb") as file:
        for i, name in enumerate(sorted(names)):
            data = (folder / "made" / name).read_bytes()
            refs[name] = [["all.bin", file.tell(), len(data)], ["made/" + name],
                          ["made/" + name, 0, len(data)], data][i % 4]
            file.write(data)
    document = {name: "base64:" + base64.b64encode(value).decode() if isinstance(value, bytes) else value
                for name, value in refs.items() if name != "2.1"}
    values[14:21, 8:16] = 3
    for change, error in (({}, None), ({"3.3": ["all.bin", 10**6, 5]}, ReferenceTargetError),
                          ({"3.3": ["gone"]}, ReferenceTargetError), ({"3.3": ["/etc/passwd"]}, ReferenceTargetError),
                          ({"3.3": ["all.bin", 3, 40]}, zcore.ChunkError),
                          ({"3.3": ["made", 0, 1]}, ReferenceTargetError),
                          ({"3.3": ["all.bin", 0, 2**40]}, zcore.ChunkError), ({"3.3": ""}, zcore.ChunkError)):
        found = []
        for cls in (zcore.ReferenceStore, brought(zcore.ReferenceStore)):
            array = zcore.open(cls(document | change, base=folder), threads=threads)
            try:
                assert (array[...] == values).all() and (array[::3, ::-4] == values[::3, ::-4]).all()
                assert (array[[5, 39, 5]] == values[[5, 39, 5]]).all()
                found.append(None)
            except zcore.ZcoreError as caught:
                found.append((type(caught), str(caught)))
        assert found[0] == found[1]
        assert found[0] is None if error is None else issubclass(found[0][0], error), found


def test_rows_like_a_dictionary():
    """Keys come and go, and are found and listed, however many there are."""
    rng = np.random.default_rng(5)
    table, model = ReferenceTable(), {}
    for i in range(20_000):
        key = b"/".join([b"%d" % n for n in rng.integers(0, 40, rng.integers(1, 4))])
        if rng.integers(4) == 0:
            assert table.remove(key) == (model.pop(key, None) is not None)
        elif rng.integers(2):
            table.put(key, f"u{i % 7}", i, None if i % 3 else 5)
            model[key] = f"u{i % 7}", i, None if i % 3 else 5
        else:
            table.put_data(key, b"%d" % i)
            model[key] = b"%d" % i
    assert len(table) == len(model) and dict(table.items()) == model
    for i, prefix in enumerate((b"", b"1/", b"17/", b"17/3/", b"x/", b"new/")):
        # The first listing after a new row looks at all of them, others find theirs in the sorted rows.
        model[b"new/%d" % i] = b"%d" % i
        table.put_data(b"new/%d" % i, b"%d" % i)
        below = [key[len(prefix):] for key in model if key.startswith(prefix) and key != prefix]
        keys = sorted({prefix + key for key in below if b"/" not in key})
        prefixes = sorted({prefix + key.split(b"/")[0] + b"/" for key in below if b"/" in key})
        assert [table.list_dir(prefix) for _ in range(3)] == 3 * [(keys, prefixes)]
    assert len(table.targets) == 7 and table.find(b"x") is None


@pytest.mark.parametrize("source", [b"{}", 5, None, ["a"]])
def test_a_source_of_another_type_is_named(source):
    with pytest.raises(TypeError, match="source is .*, expected"):
        zcore.ReferenceStore(source)


def test_a_handler_may_wait_for_another_thread_that_reads():
    """At any event of Python at which a signal may come while a key is looked for."""
    store, found, hung = ReferenceStore({"a/b": "base64:YWI=", "a/c": "c"}), [], []

    def read():
        found.append((store.get("a/b"), store.list_dir("a/").keys))

    def wait_for_a_thread(*_):
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        thread.join(10)
        if thread.is_alive():
            hung.append(thread)
            sys.setprofile(None)

    sys.setprofile(wait_for_a_thread)
    try:
        store.get("a/b"), store.list_dir("a/"), list(store.list())
    finally:
        sys.setprofile(None)
    assert len(found) > 20 and not hung and found[0] == (b"ab", ["a/b", "a/c"])
