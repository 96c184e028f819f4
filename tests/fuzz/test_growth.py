"""No parser takes more than its input: of one that is twice as long it takes about twice the time, not four times.

Each input is made of a number, and grows with it. It is doubled until parsing takes a measurable time, then twice more.
The slow tests double each input up to 16 MB, and measure the memory too.
"""
import base64
import ctypes
import gc
import json
import math
import os
import struct
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

import zcore
from tests.fuzz.guided import targets
from tests.fuzz.test_hostile_asdf import Memory
from zcore import blosc
from zcore.asdf import file_layout, scan
from zcore.asdf.tree import inline, scalars
from zcore.asdf.tree import load as tree_loader
from zcore.codecs.chain import codec_of
from zcore.engine import known_documents, views
from zcore.errors import ZcoreError
from zcore.formats import format_of
from zcore.formats.json_documents import Document
from zcore.kernel.codec.checksums import crc32c
from zcore.stores.keys import check_key
from zcore.stores.reference import document, gen
from zcore.stores.reference.document import read_document
from zcore.stores.reference.store import ReferenceStore
from zcore.stores.zip import members
from zcore.stores.zip.store import ZipStore
from zcore.text import object_memory
from zcore.text.object_memory import MAX_OBJECTS_NBYTES
from zcore.trust.file_uri import uri_to_path

zarr_v2 = format_of(2)

MAX_RATIO = 9       # of the time of an input four times as long: 4, and 16 for a square
MAX_N = 1 << 16
MAX_ROUNDS = 12
CASES = {}


def cases(prefix, parse, makes):
    for name, make in makes.items():
        CASES[f"{prefix}-{name}"] = make, parse


def forget():
    """Let what equal documents share be parsed anew."""
    views._parse.cache_clear()
    views._resolve.cache_clear()
    known_documents._kept.clear()


def timed(parse, given):
    """Return the processor time of one run, and whether the input was read."""
    forget()
    begin = time.process_time()
    try:
        parse(given)
    except (ZcoreError, ValueError):
        return time.process_time() - begin, False
    return time.process_time() - begin, True


def seconds(parse, given):
    """The processor time of one run."""
    return timed(parse, given)[0]


def ratio(make, parse, least):
    """How many times longer an input takes that is four times as long; None where the input never takes long.

    Both are the least time of several runs in turn. Other processes make a run longer and never shorter, so the ratio
    is measured again, up to `MAX_ROUNDS` times, before it is believed to be too large.
    """
    n = 64
    short = make(n)
    while any(seconds(parse, short) < least for _ in range(3)):
        if n >= MAX_N:
            return None
        n *= 2
        short = make(n)
    long = make(4 * n)
    of_short, of_long = [], []
    for i in range(MAX_ROUNDS):
        of_short.append(seconds(parse, short))
        of_long.append(seconds(parse, long))
        if i >= 2 and min(of_long) < MAX_RATIO * min(of_short):
            break
    return min(of_long) / min(of_short)


def check(make, parse, least):
    gc.disable()
    try:
        found = ratio(make, parse, least)
        if found is not None and found >= MAX_RATIO:
            found = ratio(make, parse, 4 * least)       # something else had the processor's cache
    finally:
        gc.enable()
    assert found is None or found < MAX_RATIO


# ASDF

cases("asdf-complex", scalars.complex_number, {
    "digits": lambda n: "1" * n, "digits-x": lambda n: "1" * n + "x", "spaces": lambda n: "(" + " " * n + "x",
    "fraction-x": lambda n: "1." + "1" * n + "x", "exponent-x": lambda n: "1e" + "1" * n + "x",
    "points": lambda n: "1." * n, "exponents": lambda n: "1e" * n, "signs": lambda n: "1+" * n,
    "nan": lambda n: "nan" * n,
    "spaces-behind": lambda n: "1i" + " " * n + "x"})
cases("asdf-plain", scalars.plain_value, {
    "digits": lambda n: "1" * n, "underscores": lambda n: "1_" * n, "octal": lambda n: "0" + "7" * n,
    "hexadecimal": lambda n: "0x" + "f" * n, "binary": lambda n: "0b" + "1" * n, "base-60": lambda n: "1" + ":30" * n,
    "base-60-x": lambda n: "1" + ":30" * n + "x", "base-60-real": lambda n: "1" + ":30" * n + ".5",
    "real": lambda n: "1." + "5" * n, "real-x": lambda n: "1." + "5" * n + "x",
    "exponent": lambda n: "1.0e+" + "1" * n, "date-spaces": lambda n: "2020-01-01" + " " * n + "x",
    "date-digits": lambda n: "2020-01-01 00:00:00." + "1" * n, "zone": lambda n: "2020-01-01 00:00:00" + " " * n + "Q"})


def tree(body):
    return b"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n---\n" + body.encode() + b"\n...\n"


def load(text):
    from zcore.asdf.tree.load import load

    return load(text)


def load_few_merged(text):
    """Each mapping of a chain has the members of all before it: the square of them, as YAML says, up to a bound."""
    with mock.patch("zcore.asdf.tree.load.MAX_MERGED", 1 << 12):
        return load(text)


def read_arrays(text):
    for node in load(text).values():
        if hasattr(node, "read"):
            node.read()


def shared_rows(n, value):
    """An array of as many elements as the tree has bytes, whose rows are one list."""
    n_rows = math.isqrt(n)
    return tree("# " + "x" * n + "\nx: &x [" + f"{value}, " * n_rows + "]\na: !core/ndarray-1.0.0 [" + "*x, " * n_rows +
                "]")


def laughs(n, rest):
    """Lists of lists that are shared, which stand for 2**n items."""
    return tree("x0: &x0 [1, 1]\n" + "".join([f"x{i + 1}: &x{i + 1} [*x{i}, *x{i}]\n" for i in range(n)]) +
                rest.format(f"*x{n}"))


def many(n, form):
    return "\n".join([form.format(i, i + 1) for i in range(n)])


if pytest.importorskip("yaml"):
    cases("asdf-tree", load, {name: (lambda make: lambda n: tree(make(n)))(make) for name, make in {
        "flow": lambda n: "a: [" + "1, " * n + "]", "block": lambda n: "a:\n" + "- 1\n" * n,
        "texts": lambda n: "a: [" + ", ".join(map("t{}".format, range(n))) + "]", "same-key": lambda n: "a: 1\n" * n,
        "keys": lambda n: many(n, "a{}: 1"), "anchors": lambda n: many(n, "a{0}: &x{0} [1]"),
        "aliases": lambda n: "x: &x [1]\n" + many(n, "a{}: *x"),
        "merge": lambda n: "x: &x {a: 1}\n" + many(n, "a{}: {{<<: *x}}"),
        "merge-one": lambda n: "x: &x {a: 1}\ny: {" + "<<: *x, " * n + "}",
        "merge-list": lambda n: "x: &x {a: 1}\ny: {<<: [" + "*x, " * n + "]}",
        "long": lambda n: "a: " + "x" * n, "quoted": lambda n: 'a: "' + "x" * n + '"',
        "escapes": lambda n: 'a: "' + "\\n" * n + '"', "lines": lambda n: 'a: "' + "x\n " * n + '"',
        "literal": lambda n: "a: |\n" + "  x\n" * n, "folded": lambda n: "a: >\n" + "  x\n" * n,
        "comments": lambda n: "a: 1\n" + "# x\n" * n, "deep": lambda n: "a: " + "[" * n,
        "deep-mappings": lambda n: "{" * n, "dashes": lambda n: "- " * n, "questions": lambda n: "? " * n,
        "tags": lambda n: "a: [" + "!x 1, " * n + "]", "long-tag": lambda n: "a: !<" + "t" * n + "> 1",
        "long-anchor": lambda n: "a: &" + "a" * n + " 1", "pairs": lambda n: "a: [" + "a: 1, " * n + "]",
        "mistake-behind": lambda n: "a: 1\n" * n + "}", "quotes": lambda n: '"' * n, "colons": lambda n: "a" + ":" * n,
        "odd-tags": lambda n: "a: [" + ", ".join([f"!core/ndarray-{i + 2}.0.0 [1]" for i in range(n)]) + "]",
        "lists": lambda n: "a: [" + "[]," * n + "]", "mappings": lambda n: "a: [" + "{}," * n + "]",
        "nodes": lambda n: "a: [" + "!core/ndarray-1.0.0 []," * n + "]", "reals": lambda n: "a: [" + "1.5," * n + "]",
        "mappings-of-one": lambda n: "a: [" + "{a: 1.5}," * n + "]", "named": lambda n: many(n, "- &x{0} {{}}"),
        "short-keys": lambda n: many(n, "{0:x}: 1"), "wide": lambda n: "a: \U0001f600" + "x" * n,
        "line-ends": lambda n: "a: 1\n" * n + "\n}",
        "references": lambda n: "a: [" + "{$ref: '#/a'}, " * n + "]", "binary": lambda n: "a: !!binary " + "QUJD" * n,
    }.items()})
    cases("asdf-tree", load, {"directives": lambda n: b"%YAML 1.1\n" + b"".join(
        [b"%%TAG !%x! a\n" % i for i in range(n)]) + b"---\na: 1\n...\n"})
    cases("asdf-tree", load_few_merged, {"merge-chain": lambda n: tree(
        "x0: &x0 {a: 1}\n" + many(n, "x{1}: &x{1} {{<<: *x{0}, k{0}: 1}}"))})
    cases("asdf-inline", read_arrays, {
        "numbers": lambda n: tree("a: !core/ndarray-1.0.0 [" + "1, " * n + "]"),
        "rows": lambda n: tree("a: !core/ndarray-1.0.0 [" + "[1], " * n + "]"),
        "text": lambda n: tree("a: !core/ndarray-1.0.0 [" + "a, " * n + "b]"),
        "records": lambda n: tree("a: !core/ndarray-1.0.0 {data: [" + "[1, 2], " * n + "], datatype: [int8, int8]}"),
        "fields": lambda n: tree(
            "a: !core/ndarray-1.0.0 {data: [[" + "1, " * n + "]], datatype: [" + "int8, " * n + "]}"),
        "null": lambda n: tree("a: !core/ndarray-1.0.0 [" + "null, " * n + "1]"),
        "wide-text": lambda n: tree("a: !core/ndarray-1.0.0 [" + "a, " * n + "bbbbbbbbbbbbbbb]"),
        "ascii": lambda n: tree("a: !core/ndarray-1.0.0 {datatype: [ascii, 60], data: [" + "a, " * n + "]}"),
        "text-fields": lambda n: tree("a: !core/ndarray-1.0.0 {data: [[" + "a, " * n + "]], datatype: [" +
                                      f"[ucs4, {inline.MAX_NBYTES * 3 // (16 * n)}], " * n + "]}"),
        "shared-rows": lambda n: shared_rows(n, "1.5"), "shared-null": lambda n: shared_rows(n, "null"),
        "shared-text": lambda n: shared_rows(n, "abc"),
        "shared": lambda n: tree("x: &x [" + "1, " * n + "]\na: !core/ndarray-1.0.0 [" + "*x, " * n + "]"),
        "shared-shape": lambda n: laughs(n, "a: !core/ndarray-1.0.0 {{source: 0, datatype: int8, shape: {}}}"),
        "shared-type": lambda n: laughs(n, "a: !core/ndarray-1.0.0 {{data: [1], datatype: {}, shape: [1]}}"),
        "shared-key": lambda n: laughs(n, "? {}\n: 1")})


def scanned(data):
    source = Memory(data)
    return scan.find_blocks(source, scan.read_front(source))


START = b"#ASDF 1.0.0\n"
BLOCK = file_layout.render_block_header(48, 0, b"", 0, 0, 0, bytes(16))
INDEX = START + BLOCK + b"#ASDF BLOCK INDEX\n%YAML 1.1\n---"
cases("asdf-scan", scanned, {
    "comments": lambda n: START + b"#\n" * n, "long-comment": lambda n: START + b"#" * n,
    "blocks": lambda n: START + BLOCK * n, "spaced": lambda n: START + (BLOCK + b"x" * 10) * n,
    "index": lambda n: START + BLOCK * n + file_layout.render_block_index([12 + 54 * i for i in range(n)]),
    "wrong-index": lambda n: START + BLOCK * n + file_layout.render_block_index([13 + 54 * i for i in range(n)]),
    "index-digits": lambda n: INDEX + b" [" + b"1" * n + b"]\n...\n",
    "index-spaces": lambda n: INDEX + b" [" + b" " * n + b"x]\n...\n",
    "index-lines": lambda n: INDEX + b"\n" * n + b"x",
    "index-items": lambda n: INDEX + b"\n" + b"- 12\n" * n + b"x\n...\n",
    "index-commas": lambda n: INDEX + b" [" + b"1 , " * n + b"x]\n...\n",
    "indices": lambda n: START + BLOCK + b"#ASDF BLOCK INDEX\n" * n,
    "magics": lambda n: START + BLOCK + file_layout.BLOCK_MAGIC * n,
    "reaching": lambda n: START + b"".join([
        file_layout.render_block_header(48, 0, b"", 64 * (n - i), 0, 0, bytes(16)) + b"y" * 10 for i in range(n)]),
    "tree-dots": lambda n: START + b"%YAML 1.1\n" + b"..\n" * n,
    "tree-space": lambda n: START + b"%YAML 1.1\n...\n" + b" " * n + file_layout.BLOCK_MAGIC})

# JSON, and documents of Zarr


SMILE = "\U0001f600".encode()


def wide(text):
    """A text of which each character takes four bytes."""
    return b'{"a": "%s", "b": %s}' % (SMILE, text)


def bracketed(text):
    return lambda n: ('{"a": ' + text * n).encode()


cases("json", lambda raw: Document(raw, "x", "zarr.json", bare_constants=("a",), max_nbytes=1 << 30), {
    "numbers": lambda n: b'{"a": [' + b"1," * n + b"1]}", "digits": lambda n: b'{"a": ' + b"1" * n + b"}",
    "fraction": lambda n: b'{"a": 0.' + b"1" * n + b"}", "exponent": lambda n: b'{"a": 1e' + b"1" * n + b"}",
    "escapes": lambda n: b'{"a": "' + b"\\n" * n + b'"}', "pairs": lambda n: b'{"a": "' + b"\\ud83d\\ude00" * n + b'"}',
    "backslashes": lambda n: b'{"a": "' + b"\\" * n, "quotes": lambda n: b'"' * n, "open": bracketed("["),
    "open-close": bracketed("[]"), "names": lambda n: json.dumps({f"k{i}": 1 for i in range(n)}).encode(),
    "same-name": lambda n: b"{" + b'"k":1,' * n + b'"k":1}', "blanks": lambda n: b"{" + b" " * n + b"x",
    "lists": lambda n: b'{"a": [' + b"[]," * n + b"1]}", "objects": lambda n: b'{"a": [' + b"{}," * n + b"1]}",
    "lists-of-one": lambda n: b'{"a": [' + b"[1.5]," * n + b"1]}",
    "objects-of-one": lambda n: b'{"a": [' + b'{"a":1.5},' * n + b"1]}",
    "objects-of-six": lambda n: b'{"a": [' + b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1},' * n + b"1]}",
    "reals": lambda n: b'{"a": [' + b"1.5," * n + b"1]}", "integers": lambda n: b'{"a": [' + b"999," * n + b"1]}",
    "texts": lambda n: b'{"a": [' + b'"ab",' * n + b"1]}", "wide-texts": lambda n: wide(b'["", "%s", ""]' % (b"x" * n)),
    "escaped-texts": lambda n: b'{"a": [' + b'"\\ud83d\\ude00a",' * n + b"1]}",
    "short-names": lambda n: b"{" + b",".join([b'"%x":1' % i for i in range(n)]) + b"}",
    "wide-text": lambda n: wide(b'"%s"' % (b"x" * n + SMILE)), "wide-parts": lambda n: wide(b"[%s0]" % (b"[]," * n)),
    "escaped-text": lambda n: b'{"a": "' + b"x" * n + b'\\ud83d\\ude00"}',
    "depth": lambda n: b'{"a": [' + b"[" * 60 + b"1" + b"]" * 60 + b",1" * n + b"]}",
    "deep-lists": lambda n: b'{"a": [' + (b"[" * 60 + b"]" * 60 + b",") * n + b"1]}",
    "not-finite": lambda n: b'{"a": [' + b"NaN," * n + b"1]}", "quoted-quotes": bracketed('"\\"')})

ARRAY = {"zarr_format": 3, "node_type": "array", "shape": [10, 10], "data_type": "int32", "fill_value": 0,
         "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 5]}},
         "chunk_key_encoding": {"name": "default"},
         "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}


def v3(**members):
    return json.dumps({**ARRAY, **members}).encode()


def rectilinear(n, lengths):
    return v3(shape=[n, 10], chunk_grid={"name": "rectilinear", "configuration": {
        "kind": "inline", "chunk_shapes": [lengths, [5, 5]]}})


def structure(n):
    return {"name": "struct", "configuration": {"fields": [{"name": f"a{i}", "data_type": "int8"} for i in range(n)]}}


def opened(raw, key="zarr.json"):
    store = zcore.MemoryStore()
    store.set(key, raw)
    array = zcore.open_array(store, mode="r")
    return repr(array), str(array.info), array[:1], array._repr_html_()


def described(raw):
    """Without the display in a notebook, which reads the attributes again."""
    store = zcore.MemoryStore()
    store.set("zarr.json", raw)
    array = zcore.open_array(store, mode="r")
    return repr(array), str(array.info)


cases("attributes", described, {
    "lists": lambda n: v3(attributes={"a": [[1.5]] * n}), "objects": lambda n: v3(attributes={"a": [{"b": 1.5}] * n}),
    "names": lambda n: v3(attributes={f"{i:x}": 1 for i in range(n)})})
BYTES = ARRAY["codecs"]
cases("v3", opened, {
    "shape": lambda n: v3(shape=[1] * n), "edges": lambda n: rectilinear(n, [1] * n),
    "unlike-edges": lambda n: rectilinear(3 * n, [1, 2] * n),
    "runs": lambda n: rectilinear(8 * n, [[1, 2], [2, 3]] * n),
    "struct": lambda n: v3(data_type=structure(n), fill_value={f"a{i}": 0 for i in range(n)}),
    "struct-base64": lambda n: v3(data_type=structure(n), fill_value=base64.b64encode(bytes(n)).decode()),
    "checksums": lambda n: v3(codecs=BYTES + [{"name": "crc32c"}] * n),
    "names-of-codecs": lambda n: v3(codecs=["bytes"] + ["crc32c"] * n),
    "transposes": lambda n: v3(codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}] * n + BYTES),
    "order": lambda n: v3(codecs=[{"name": "transpose", "configuration": {"order": list(range(n))}}, *BYTES]),
    "dimension-names": lambda n: v3(dimension_names=["x"] * n),
    "attributes": lambda n: v3(attributes={f"a{i}": i for i in range(n)}),
    "unknown": lambda n: v3(**{f"u{i}": {"must_understand": False} for i in range(n)}),
    "fill-hexadecimal": lambda n: v3(data_type="float64", fill_value="0x" + "0" * n),
    "fill-list": lambda n: v3(data_type="bytes", fill_value=[1] * n),
    "type": lambda n: v3(data_type="r" + "8" * n), "codec": lambda n: v3(codecs=[{"name": "x" * n}])})
V2 = {"zarr_format": 2, "shape": [10], "chunks": [5], "dtype": "<i4", "compressor": None, "fill_value": None,
      "filters": None, "order": "C"}
cases("v2", lambda raw: zarr_v2.parse_array(raw, "x"), {
    "fields": lambda n: json.dumps({**V2, "dtype": [[f"a{i}", "<i4"] for i in range(n)]}).encode(),
    "type": lambda n: json.dumps({**V2, "dtype": "<i4," * n}).encode(),
    "unit": lambda n: json.dumps({**V2, "dtype": "<M8[" + "1" * n + "ns]"}).encode(),
    "filters": lambda n: json.dumps({**V2, "filters": [{"id": "delta", "dtype": "<i4"}] * n}).encode(),
    "fill": lambda n: json.dumps({**V2, "dtype": f"<U{n}", "fill_value": "x" * n}).encode()})


def group(names):
    store = zcore.MemoryStore()
    node = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    store.set("zarr.json", json.dumps({**node, "consolidated_metadata": {
        "kind": "inline", "must_understand": False, "metadata": dict.fromkeys(names, node)}}).encode())
    return store


def walked(store):
    root = zcore.open_group(store, mode="r")
    return list(root.members(max_depth=None)), str(root.tree())


cases("consolidated", walked, {
    "flat": lambda n: group([f"a{i}" for i in range(n)]),
    "two-levels": lambda n: group([f"g{i % 10}/a{i}" for i in range(n)]),
    "orphans": lambda n: group([f"g{i}/a/b/c" for i in range(n)])})

# References


def version_1(**members):
    return json.dumps({"version": 1, "refs": {}, **members}).encode()


def generated(n, **members):
    return version_1(gen=[{"key": "k{{i}}", "url": "u", "dimensions": {"i": {"stop": n}}, **members}])


def url(text):
    return version_1(templates={"t": "x"}, refs={"k": [text]})


cases("references", read_document, {
    "texts": lambda n: json.dumps({f"k{i}": "x" for i in range(n)}).encode(),
    "short-texts": lambda n: b"{" + b",".join([b'"%x":""' % i for i in range(n)]) + b"}",
    "short-targets": lambda n: b"{" + b",".join([b'"%x":["%x"]' % (i, i) for i in range(n)]) + b"}",
    "one-target": lambda n: b"{" + b",".join([b'"%x":["u"]' % i for i in range(n)]) + b"}",
    "wide-object": lambda n: b'{"a":{"b":"' + SMILE * n + b'"}}',
    "wide-text": lambda n: b'{"a":"' + SMILE * n + b'"}',
    "lists": lambda n: b'{"a":{"b":[' + b"[]," * n + b"1]}}",
    "long-rendered": lambda n: version_1(templates={"t": "x" * 60_000}, refs={f"k{i}": ["{{t}}" + str(i)]
                                                                               for i in range(n)}),
    "wide-rendered": lambda n: version_1(templates={"t": "\U0001f600" * 900}, refs={f"k{i}": ["{{t}}" + str(i)]
                                                                                 for i in range(n)}),
    "short-rendered": lambda n: version_1(templates={"t": ""}, refs={f"{i:x}": [f"{{{{t}}}}{i:x}"] for i in range(n)}),
    "targets": lambda n: json.dumps({f"k{i}": [f"u{i}", i, 5] for i in range(n)}).encode(),
    "objects": lambda n: json.dumps({f"k{i}": {"a": 1} for i in range(n)}).encode(),
    "object": lambda n: json.dumps({"k": {f"a{i}": i for i in range(n)}}).encode(),
    "escapes": lambda n: b'{"a":"' + b"\\n" * n + b'"}', "pairs": lambda n: b'{"a":"' + b"\\ud83d\\ude00" * n + b'"}',
    "escaped-keys": lambda n: b"{" + b",".join([b'"\\u0061%d":"\\n"' % i for i in range(n)]) + b"}",
    "same-key": lambda n: b"{" + b'"a":"x",' * n + b'"a":"x"}', "backslashes": lambda n: b'{"a":"' + b"\\" * n,
    "deep": lambda n: b'{"a":{"b":' * n, "blanks": lambda n: b"{" + b" " * n,
    "digits": lambda n: b'{"a":["u",' + b"1" * n,
    "base64": lambda n: b'{"a":"base64:' + b"QUJD" * n + b'"}',
    "members": lambda n: b'{"version":1,' + b",".join([b'"m%d":1' % i for i in range(n)]) + b"}",
    "templates": lambda n: version_1(templates={f"t{i}": "x" for i in range(n)}, refs={f"k{i}": ["{{t" + str(i) + "}}"]
                                                                                        for i in range(n)}),
    "one-text": lambda n: url("{{t}}" * n), "braces": lambda n: url("{" * n), "closed": lambda n: url("{{t" + "}" * n),
    "open-blanks": lambda n: url("{{" + " " * n), "comments": lambda n: url("{#" * n),
    "sum": lambda n: url("{{ 1" + " + 1" * n + "}}"), "number": lambda n: url("{{ " + "1" * n + "}}"),
    "underscores": lambda n: url("{{ 1" + "_1" * n + "x}}"), "name": lambda n: url("{{ " + "a" * n + "!}}"),
    "text": lambda n: url("{{ '" + "\\" * n + "}}"),
    "generated": generated, "generated-urls": lambda n: generated(n, url="u{{i}}", offset="{{ i * 10 }}", length="5"),
    "generated-long": lambda n: generated(n, key="k" * 4000 + "{{i}}", url="u" * 4000 + "{{i}}"),
    "generated-same": lambda n: generated(n, key="k"),
    "generated-expressions": lambda n: generated(n, key="k{{ '%03d' % i }}"),
    "generators": lambda n: version_1(gen=[{"key": f"k{j}", "url": "u", "dimensions": {"i": {"stop": 1}}}
                                           for j in range(n)]),
    "dimensions": lambda n: generated(1, key="k", dimensions={f"i{j}": {"stop": 1} for j in range(n)}),
    "listed": lambda n: generated(n, dimensions={"i": list(range(n))})})


def walked_references(mapping):
    store = ReferenceStore(mapping)
    return store.list_dir(""), list(store.list_prefix("")), store.get("none"), store.list_dir("a0/")


cases("reference-store", walked_references, {
    "flat": lambda n: {f"k{i}": "x" for i in range(n)}, "directories": lambda n: {f"a{i}/x": "x" for i in range(n)}})

# Zip archives, keys, URIs, streams


def zipped(names, n_headers=None):
    """An archive of empty members. The last ones have the header of the last of `n_headers`."""
    headers, entries, starts = [], [], []
    for i, name in enumerate(names):
        if n_headers is None or i < n_headers:
            headers.append(members.HEADER.pack(b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name)
            starts.append(starts[-1] + len(headers[-2]) if starts else 0)
        entries.append(struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0,
                                   0, 0, starts[-1]) + name)
    body, directory = b"".join(headers), b"".join(entries)
    n = len(entries) & 0xFFFF
    return body + directory + members.END.pack(b"PK\5\6", 0, 0, n, n, len(directory), len(body), 0)


def read_zip(raw):
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(raw)
        file.flush()
        with ZipStore(file.name, mode="r") as store:
            return store.list_dir(""), list(store.list_prefix(""))


cases("zip", read_zip, {
    "flat": lambda n: zipped([b"a%d" % i for i in range(n)]), "same": lambda n: zipped([b"a"] * n),
    "shared": lambda n: zipped([b"a"] * n, 1), "wide": lambda n: zipped([b"%x\x80" % i for i in range(n)]),
    "directories": lambda n: zipped([b"a%d/b/c" % i for i in range(n)]),
    "ends": lambda n: zipped([b"a"]) + b"PK\5\6" * n})
cases("uri", lambda text: uri_to_path(text, "posix"), {
    "scheme": lambda n: "a" * n + ":", "slashes": lambda n: "file:" + "/" * n,
    "escapes": lambda n: "file:///" + "%41" * n, "signs": lambda n: "file:///" + "%" * n,
    "above": lambda n: "file:///" + "a/../" * n})
cases("uri-windows", lambda text: uri_to_path(text, "windows"), {
    "slashes": lambda n: "file:" + "/" * n, "escapes": lambda n: "file:///c:/" + "%41" * n,
    "above": lambda n: "file:///c:/" + "a/../" * n})
cases("key", check_key, {"parts": lambda n: "a/" * n + "a", "periods": lambda n: "." * n})

STREAMS = {name: (codec_of(name, {}).encode(b""), codec_of(name, {})) for name in (
    "numcodecs.bz2", "numcodecs.lzma", "gzip", "zstd")}
for _name, (_raw, _codec) in STREAMS.items():
    cases(_name, (lambda codec: lambda raw: codec.decode(raw, 10, True))(_codec),
          {"streams": (lambda raw: lambda n: raw * n)(_raw)})

# Chunks


def blosc_chunk(n, flags, stream, n_shared=1):
    """`n` blocks of 8 bytes. As many as `n_shared` share one stream."""
    size, starts = 4 + len(stream), 16 + 4 * n
    table = struct.pack(f"<{n}i", *[starts + i // n_shared * size for i in range(n)])
    body = (struct.pack("<i", len(stream)) + stream) * -(-n // n_shared)
    return struct.pack("<BBBBIII", 2, 1, flags, 1, 8 * n, 8, starts + len(body)) + table + body


def empty_zlib_blocks(n):
    return b"\x78\x01" + b"\0\0\0\xff\xff" * n + zlib.compress(b"12345678", 0)[2:]


def empty_zstd_blocks(n):
    return b"\x28\xb5\x2f\xfd\x20\x08" + bytes(3 * n) + b"\x41\0\0" + b"12345678"


NO_SPLIT, ZLIB, ZSTD = 0x10, 3 << 5, 4 << 5
cases("blosc", blosc.decompress, {
    "blocks": lambda n: blosc_chunk(n, NO_SPLIT, b"12345678"),
    "zlib-blocks": lambda n: blosc_chunk(n, NO_SPLIT | ZLIB, zlib.compress(b"12345678")),
    "shared-zlib": lambda n: blosc_chunk(n, NO_SPLIT | ZLIB, empty_zlib_blocks(n), n),
    "shared-zstd": lambda n: blosc_chunk(n, NO_SPLIT | ZSTD, empty_zstd_blocks(n), n)})


def shard_array(n, entries):
    """An array of one shard of `n` chunks of a byte, and an index of these entries."""
    store = zcore.MemoryStore()
    zcore.create_array(store, shape=n, dtype="u1", shards=n, chunks=1, compressors=None, write_empty_chunks=True)
    words = struct.pack(f"<{2 * n}Q", *[word for entry in entries for word in entry])
    store.set("c/0", bytes(range(256)) + words + crc32c(words).to_bytes(4, "little"))
    return store


cases("shard", lambda store: zcore.open_array(store, mode="r")[...], {
    "empty": lambda n: shard_array(n, [(2**64 - 1, 2**64 - 1)] * n),
    "shared": lambda n: shard_array(n, [(7, 1)] * n),
    "backwards": lambda n: shard_array(n, [(255 - i % 256, 1) for i in range(n)]),
    "damaged": lambda n: shard_array(n, [(7, 1)] * (n - 1) + [(2**63, 1)])})

# Answers of servers


def answered(data):
    with suppress(ZcoreError):
        targets.http_answer(b"\0" + data)


HEAD = b"HTTP/1.1 200 OK\r\n"
cases("http", answered, {
    "body": lambda n: HEAD + b"\r\n" + b"x" * n,
    "length": lambda n: HEAD + b"Content-Length: %d\r\n\r\n" % n + b"x" * n,
    "chunks": lambda n: HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * n + b"0\r\n\r\n",
    "long-chunk": lambda n: HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * n + b"1\r\nx\r\n",
    "headers": lambda n: HEAD + b"A: b\r\n" * n, "long-header": lambda n: HEAD + b"A: " + b"b" * n,
    "status": lambda n: b"HTTP/1.1 " + b"2" * n, "continue": lambda n: b"HTTP/1.1 100 Continue\r\n\r\n" * n,
    "location": lambda n: b"HTTP/1.1 302 Found\r\nLocation: /" + b"a/../" * n + b"\r\n\r\n",
    "digits": lambda n: HEAD + b"Content-Length: " + b"1" * n + b"\r\n\r\n",
    "range": lambda n: b"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-" + b"1" * n + b"/2\r\n\r\n"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.thinned(2, "name")
@pytest.mark.parametrize("name", CASES)
def test_no_parser_takes_more_than_its_input(name):
    check(*CASES[name], 0.0005)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_no_parser_takes_more_than_a_long_input(name):
    check(*CASES[name], 0.03)


# Up to 16 MB

MAX_NBYTES = 1 << 24
MAX_SECONDS = 2.0       # of a parser: its input is not doubled any more
MIN_SECONDS = 0.05      # shorter times are not compared
MAX_DOUBLED = 3         # times as long, for an input twice as long
# The memory beside the input at its peak: so many times the input, and a constant. What becomes objects of Python is
# counted while it is read, or before, and refused beyond `MAX_OBJECTS_NBYTES`; JSON beyond `room_for` its length.
TIMES_INPUT, CONSTANT = 4, 8 << 20
DOCUMENTS = ("json", "attributes", "v3", "v2", "consolidated", "references", "reference-store")
OBJECTS = ("asdf-tree", "asdf-inline", *DOCUMENTS, "zip")
BUDGETS = {object_memory: ["MAX_OBJECTS_NBYTES"], tree_loader: ["MAX_OBJECTS_NBYTES"],
           inline: ["MAX_NBYTES", "MAX_TEXT_NBYTES"],
           members: ["MAX_OBJECTS_NBYTES"], gen: ["MAX_REFERENCES"],
           document: ["MAX_TABLE_NBYTES", "MAX_MEMBER_NBYTES", "MAX_VALUE_NBYTES"]}
# The default tests measure objects with inputs and budgets that are so many times smaller; bytes with 2 MB.
SCALE = 64


def nbytes_of(given):
    if isinstance(given, zcore.MemoryStore):
        return sum([len(given.get(key)) for key in given.list()])
    return sum([len(key) + len(value) for key, value in given.items()]) if isinstance(given, dict) else len(given)


def doubled(name, max_nbytes, max_seconds):
    """Double an input as long as `max_nbytes` and `max_seconds` let it be.

    Returns the longest input that was tried, about the longest one that was read if that is shorter, and a text about
    the doublings that took too long.
    """
    make, parse = CASES[name]
    n, n_read, before, too_long = 64, 0, 0.0, ""
    given = longest_read = make(n)
    while True:
        took, is_read = timed(parse, given)
        if before >= MIN_SECONDS and took > MAX_DOUBLED * before:
            too_long += again(parse, make(n // 2), given)
        if is_read:
            n_read, longest_read = n, given
        longer = make(2 * n) if took < max_seconds and 2 * n <= max_nbytes else None
        if longer is None or nbytes_of(longer) > max_nbytes:
            break
        n, given, before = 2 * n, longer, took
    step = n_read // 2 if name.startswith(OBJECTS) else 0
    while n_read < n and step >= n_read // 8 > 0:
        longer = make(n_read + step)
        if timed(parse, longer)[1]:
            n_read, longest_read = n_read + step, longer
        step //= 2
    return [given, *([longest_read] if 0 < n_read < n else [])], too_long


def again(parse, short, long):
    """Return a sentence if the long input takes too long whenever it is measured, else no text."""
    for _ in range(MAX_ROUNDS):
        of_short, of_long = seconds(parse, short), seconds(parse, long)
        if of_short < MIN_SECONDS or of_long <= MAX_DOUBLED * of_short:
            return ""
    return f"{of_long / of_short:.1f} times as long, {of_short:.2f} s and {of_long:.2f} s; "


def peak_of(parse, given):
    """Return the bytes of memory that parsing an input takes at its peak, in a process of its own."""
    forget()
    # Memory that is free within the process would hide what the parser takes. It is looked for before the fork: the
    # child would copy each page that it touches. Garbage of earlier tests is collected first.
    gc.collect()
    gc.freeze()
    ctypes.CDLL(None).malloc_trim(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            before = status("VmRSS")
            timed(parse, given)
            os.write(writer, f"{status('VmHWM') - before}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    assert said, "the process has ended"
    return int(said)


def status(name):
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) << 10


def excess(name, given, budget):
    """Return a sentence if the parser takes more memory than it may."""
    n_bytes, peak = nbytes_of(given), peak_of(CASES[name][1], given)
    if name.startswith(DOCUMENTS):
        budget = object_memory.room_for(n_bytes, budget)
    limit = TIMES_INPUT * n_bytes + CONSTANT + (budget if name.startswith(OBJECTS) else 0)
    return f"{peak} bytes of memory for {n_bytes} bytes, expected at most {limit}; " if peak > limit else ""


measures_memory = sys.platform.startswith("linux") and zcore.show_config("dicts")["build"]["variant"] != "sanitize"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_time_and_memory_grow_with_inputs_of_16_megabytes(name):
    """The memory is measured where /proc tells it, and without the sanitizers, which take memory."""
    inputs, too_long = doubled(name, MAX_NBYTES, MAX_SECONDS)
    assert not too_long
    if measures_memory:
        assert not "".join([excess(name, given, MAX_OBJECTS_NBYTES) for given in inputs])


@pytest.mark.skipif(not measures_memory, reason="/proc tells the peak of memory; the sanitizers take memory")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if i % 17 else name
                                  for i, name in enumerate(CASES)])
def test_memory_is_bounded_by_a_small_budget(name, monkeypatch):
    for module, names in BUDGETS.items():
        for budget in names:
            monkeypatch.setattr(module, budget, getattr(module, budget) // SCALE)
    has_objects = name.startswith(OBJECTS)
    inputs, _ = doubled(name, MAX_NBYTES // (SCALE if has_objects else 8), 0.1)
    assert not "".join([excess(name, given, MAX_OBJECTS_NBYTES // SCALE) for given in inputs])


@pytest.mark.parametrize(("module", "budget", "name", "message"), [
    (object_memory, "MAX_OBJECTS_NBYTES", "json-lists", "x/zarr.json: expected values that take at most [0-9]+ bytes "
     "of memory, found some [0-9]+, in a text of [0-9]+ bytes"),
    (tree_loader, "MAX_OBJECTS_NBYTES", "asdf-tree-lists", "the tree, line [0-9]+: expected values that take at most "
     "9999 bytes of memory, found more"),
    (inline, "MAX_NBYTES", "asdf-inline-numbers", "inline data: expected elements that take at most 9999 bytes of "
     "memory, found some [0-9]+"),
    (document, "MAX_TABLE_NBYTES", "references-generated", "expected references that take at most [0-9]+ bytes of "
     "memory, found more: [0-9]+ take [0-9]+; max_generated= allows more"),
    (document, "MAX_MEMBER_NBYTES", "references-listed", "gen: expected values that take at most 9999 bytes"),
    (document, "MAX_VALUE_NBYTES", "references-lists", "key 'a': expected values that take at most [0-9]+ bytes"),
    (document, "MAX_TABLE_NBYTES", "references-long-rendered", "templates: expected references that take at most "),
    (members, "MAX_OBJECTS_NBYTES", "zip-flat", "expected a directory that takes at most [0-9]+ bytes of memory, found "
     "999 members in a file of [0-9]+ bytes"),
], ids=lambda value: value if isinstance(value, str) and "-" in value else "")
def test_what_takes_too_much_memory_is_refused_by_a_sentence(module, budget, name, message, monkeypatch):
    if name not in CASES:
        pytest.skip("PyYAML is not installed")
    make, parse = CASES[name]
    parse(make(9))
    monkeypatch.setattr(module, budget, 1 << 20 if "rendered" in name else 9999)
    with pytest.raises(ZcoreError, match=message):
        parse(make(999))


def test_more_references_may_be_generated_by_leave(monkeypatch):
    monkeypatch.setattr(document, "MAX_TABLE_NBYTES", 9999)
    assert len(read_document(generated(999), max_generated=1000)) == 999
    with pytest.raises(ZcoreError, match="max_generated= allows more"):
        read_document(generated(999))


def test_lists_of_codecs_and_directives_have_a_limit():
    with pytest.raises(ZcoreError, match="expected at most 4096 codecs, found 4097"):
        opened(v3(codecs=BYTES + ["crc32c"] * 4096))
    if "asdf-tree-directives" in CASES:
        with pytest.raises(ZcoreError, match="expected at most 100 directives %TAG, found 101"):
            load(CASES["asdf-tree-directives"][0](101))
