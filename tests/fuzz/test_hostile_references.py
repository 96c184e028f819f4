"""Reference sets made to hurt: the scanner against Python's json, and documents that want time, memory or a crash."""
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import zcore
from tests.each import each
from tests.examples import examples
from tests.fuzz.reference_model import model
from zcore.errors import ReferenceFormatError
from zcore.stores.reference.document import read_document
from zcore.stores.reference.store import ReferenceStore

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zcore.__file__).parents[1])}

def found(raw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dict(read_document(raw).items())
        except ReferenceFormatError:
            return None


texts = st.text(max_size=6) | st.sampled_from(
    ["base64:AAEC", "base64:", "base64:A", "{{u}}", "\\", "é", "\u2028", "\0", "𝄞"])
names = st.sampled_from(["a", "b", "a/b", "x/0.0", "é", "version1", ".zgroup", "a//b", "..", "", ".__zc_tmp.1"]) | texts
numbers = st.sampled_from([0, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 10**30, -1, 1.0, -0.0, 1e300, True])
anything = st.recursive(st.none() | numbers | texts, lambda inner: st.lists(inner, max_size=3)
                        | st.dictionaries(texts, inner, max_size=3), max_leaves=6)
extents = texts.map(lambda url: [url]) | st.tuples(texts, st.integers(0, 2**40), st.integers(0, 2**40)).map(list)
references = texts | extents | extents | st.dictionaries(texts, anything, max_size=3)
sets = st.dictionaries(names, references, max_size=5)
odd_sets = st.dictionaries(names, references | anything | st.tuples(texts, numbers, numbers).map(list), max_size=3)
documents = sets | odd_sets | sets.map(lambda refs: {"version": 1, "refs": refs}) | odd_sets.map(
    lambda refs: {"version": 1, "refs": refs}) | st.tuples(sets, anything).map(
    lambda pair: {"version": 1, "more": pair[1], "refs": pair[0]})


@st.composite
def written(draw):
    """A document as bytes: by json, with blanks, or with bytes of it changed."""
    raw = json.dumps(draw(documents), ensure_ascii=draw(st.booleans()),
                     indent=draw(st.sampled_from([None, 1, "\t"]))).encode(errors="replace")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(raw)))
        stop = draw(st.integers(at, min(len(raw), at + 4)))
        raw = raw[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=2)) + raw[stop:]
    return raw


PIECES = [b"", b" ", b"\n", b"\r\t", b",", b":", b'"', b"\\", b"{", b"}", b"[", b"]", b"0", b"00", b"-", b"-0",
          b"1e5", b".5", b"1e999", b"true", b"null", b"NaN", b"-Infinity", b"\\u00e9", b"\\ud834\\udd1e", b"\\ud800",
          b"\\u0000", b"\\x", b"\x00", b"\x1f", b"\x7f", b"\xff", b"\xc3", b"\xc3\xa9", b"\xed\xa0\x80",
          b"\xef\xbb\xbf", b"//", b"\x0b", b'"a":', b'"version": 1,', b'"refs": {},', b'"version": 2',
          b'{"a":1,"a":1}', b"[" * 63, b"\xc2\xa0"]


def _set_of(value):
    return b'{"version": 1, "more": %s, "refs": {"a": "b"}}' % value


@examples(600)
@given(written())
@example(b'{"a": ["u", 00, 1]}')
@example(b'{"a": ["u", 1, 00]}')
@example(b'{"a": ["u", -0, 1]}')
@example(b'{"a": {"b": -0}}')
@example(b'{"a": {"b": 1, "b": 2}}')
@example(b'{"a": {"b": {"c": 1, "c": 2}}}')
@example(b'{"a": {"b": 1e999}}')
@example(b'{"a": {"b": [NaN, -Infinity]}}')
@example(b'{"version": 0}')
@example(b'{"version": 0, "a": "b"}')
@example(b'{"version": null}')
@example(b'{"version": {"a": NaN}}')
@example(b'{"version": {"a": NaN}, "refs": {}}')
@example(b'{"version": [1]}')
@example(b'{"version": "a"}')
@example(b'{"\\u0076ersion": 1, "refs": {"a": "b"}}')
@example(b'{"version": -1}')
@example(b'{"a": "b"')
@example(b'{"a": "b\\')
@example(b'{"a": "b\\"')
@example(b'{"a": ["u"')
@example(b'{"a": ["u", 1')
@example(b'{"a": ["u", ')
@example(b'{"a": [')
@example(b'{"a": {')
@example(b'{"a":')
@example(b'{"a"')
@example(b'{')
@example(b"{\x00}\x00")
@example(b'{".__zc_tmp.1": "a"}')
@example(b'{"a/.__zc_tmp.1/b": "a"}')
@example(_set_of(b"[1 2]"))
@example(_set_of(b"[1,]"))
@example(_set_of(b"nope"))
@example(_set_of(b'{"a" 1}'))
@example(_set_of(b'{"a": 1, "a": 1}'))
@example(_set_of(b'"\\x"'))
@example(_set_of(b"[NaN]"))
@example(_set_of(b"[\x00]"))
@example(b'{"a": {"b": ' + b"[" * 62 + b"]" * 62 + b"}}")
@example(b'{"a": {"b": ' + b"[" * 63 + b"]" * 63 + b"}}")
@example(_set_of(b"[" * 63 + b"]" * 63))
@example(_set_of(b"[" * 64 + b"]" * 64))
@example(b'{"a": {"b": ' + b"1" * 5000 + b"}}")
def test_the_scanner_reads_what_json_says(raw):
    """RF-DOC-01, RF-DOC-02, RF-V0-04, RF-V1-02, RF-V1-04, RF-V1-06, RF-V1-10: both accept, and find the same, or both
    refuse."""
    assert found(raw) == model(raw)


@pytest.mark.parametrize("member", ["templates", "gen"])
@pytest.mark.parametrize("value", [
    b'{"u": "a", "u": "b"}', b'[{"key": "a", "key": "b", "url": "u", "dimensions": {"i": [1]}}]', b"[\x00]",
    b'{"a": NaN}', b"{,}"])
def test_members_are_strict_json_too(member, value):
    """RF-V1-10: the last of two templates of one name is not taken in silence."""
    with pytest.raises(ReferenceFormatError):
        read_document(b'{"version": 1, "%s": %s}' % (member.encode(), value))


def test_no_cut_of_a_document_is_one():
    """RF-DOC-01"""
    raw = json.dumps({"version": 1, "templates": {"u": "v"}, "gen": [],
                      "refs": {"a\\": ["{{u}}", 1, 2], "b": {"c": [1]}, "d": "é\n"}}).encode()
    for n in range(len(raw)):
        with pytest.raises(ReferenceFormatError):
            read_document(raw[:n])
    assert len(read_document(raw)) == 3


GEN = {"key": "k{{i}}", "url": "u", "dimensions": {"i": {"stop": 3}}}
WRONG = [None, True, False, 0, -1, 1.5, 2**63, 2**64, 10**4000, "", "x", "{{", "{{i}}", "{% for i in x %}", [], [[]],
         {}, {"a": []}, ["x"], [None], float("nan"), float("inf"), "\0", "\ud800"]


@each("value", WRONG, ids=lambda value: repr(value)[:20])
def test_wrong_types_in_every_place(value):
    """RF-TPL-01, RF-GEN-01, RF-GEN-02, RF-GEN-06, RF-V1-02, RF-V1-04: an error of zcore, or a set that lists itself."""
    pytest.importorskip("jinja2")
    places = [value, {"version": value}, {"version": value, "refs": {}}, {"version": 1, "refs": value}, {"a": value},
              {"a": [value]}, {"a": ["u", value, 1]}, {"a": ["u", 1, value]}, {"a": ["u", 1, 2, value]}]
    places += [{"version": 1, name: value} for name in ("templates", "gen", "refs", "more")]
    places += [{"version": 1, "templates": {"u": value}, "refs": {"a": ["{{u}}"]}},
               {"version": 1, "templates": {"u": "{{c}}"}, "refs": {"a": [value]}}, {"version": 1, "gen": [value]}]
    places += [{"version": 1, "gen": [{**GEN, "offset": "1", "length": "1", name: value}]}
               for name in ("key", "url", "offset", "length", "dimensions", "more")]
    places += [{"version": 1, "gen": [{**GEN, "dimensions": {"i": given}}]}
               for given in (value, [value], {"stop": value}, {"stop": 3, "start": value}, {"stop": 3, "step": value})]
    for document in places:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                store = ReferenceStore(document if isinstance(document, dict) else {"a": document})
                assert len(list(store.list())) == len(store.to_v0())
            except zcore.ZcoreError:
                pass


HOSTILE = """
import resource, sys, warnings
import zcore, jinja2
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (10**9,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
gen = {"key": "k{{i}}", "url": "u", "dimensions": {"i": {"stop": 3}}}
deep = {}
for _ in range(10**5):
    deep = {"a": deep}
urls = ["{{ [].__class__ }}", "{{ u.__class__ }}", "{{ range(10**9) }}", "{{ 'a' * 10**9 }}", "{{ 'a' * 9 * 9**9 }}",
        "{{ 9**9**9**9 }}", "{{ 2.0**9999 }}", "{{ '%999999999d' % 1 }}", "{{ '%*d' % (10**9, 1) }}", "{{ f(c=f) }}",
        "{{ self }}", "{{ cycler }}", "{{ lipsum() }}", "{{ u|attr('x') }}", "{{ u['x'] }}", "{{ config }}",
        "{% for i in 'ab' %}{% endfor %}", "{% import 'os' %}", "{{ " + "(" * 10**4, "{{ " + "-" * 10**4 + "1 }}",
        "{{ " + "1+" * 10**4 + "1 }}", "{{" * 10**4, "{{ u" + " " * 10**5, "{# " * 10**4, "{{ '" + chr(92) * 10**4,
        "{{ 'a'.format(1) }}", "{{ 'x{0.__class__}'|format(1) }}", "{{ '%(a)s'|format(1) }}", "{{ g(c=1) }}",
        "{{ f(c=g) }}"]
templates = {"u": "v", "f": "{{c}}", "g": "{{g(c=c)}}"}
documents = [{"version": 1, "templates": templates, "refs": {"a": [url]}} for url in urls]
documents += [{"version": 1, "gen": [{**gen, **change}]} for change in (
    {"dimensions": {"i": {"stop": 10**12}}}, {"dimensions": {"i": {"stop": 2**63 - 1}}},
    {"dimensions": {"i": {"start": -2**63, "stop": 2**63 - 1}}},
    {"dimensions": {c: {"stop": 1000} for c in "abcdefgh"}},
    {"key": "a" * 4000 + "{{i}}", "dimensions": {"i": {"stop": 2**24}}},
    {"url": "a" * 4000 + "{{i}}", "dimensions": {"i": {"stop": 2**24}}},
    {"offset": "{{ i * 2**62 }}", "length": "1"}, {"offset": str(2**63), "length": "1"},
    {"offset": "{{ 1 - i }}", "length": "1"}, {"offset": str(2**63 - 1), "length": "{{ i }}"},
    {"offset": "{{ 4 / 2 }}", "length": "1"}, {"offset": "9" * 5000, "length": "1"})]
many = {str(i): [f"{{{{u}}}}{i}"] for i in range(20000)}
documents += [{"version": 1, "templates": {"u": "a" * 65000}, "refs": many},
              {"a": deep}, {"a": ["u", 2**63, 1]}, {"a": ["u", 2**62, 2**62]}]
for i, document in enumerate(documents):
    try:
        zcore.ReferenceStore(document)
    except zcore.ZcoreError:
        continue
    sys.exit(f"document {i} was taken: {document!r:.200}")
store = zcore.ReferenceStore({"a": ["a/" * 10**6], "b": ["x" * 10**6], "c": ["../" * 10**6]}, base="/")
for key in "abc":
    try:
        store.get(key)
    except zcore.ReferenceTargetError:
        continue
    sys.exit(f"{key} was taken")
print("all refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit of address space")
@pytest.mark.skipif(zcore.show_config("dicts")["build"]["variant"] == "sanitize",
                    reason="the sanitizers keep their notes all over the address space")
def test_documents_that_want_time_or_memory():
    """RF-TPL-08, RF-TPL-09, RF-GEN-10, RF-V1-04: with 1 GB of address space each is refused by an error of zcore."""
    pytest.importorskip("jinja2")
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, "all refused\n"), done.stderr[-2000:]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit of address space")
@pytest.mark.skipif(zcore.show_config("dicts")["build"]["variant"] == "sanitize",
                    reason="the sanitizers keep their notes all over the address space")
def test_a_small_document_takes_little_memory_to_read(tmp_path):
    """The largest document that is read has 2 GiB, which is no reason to have as much at hand."""
    (tmp_path / "refs.json").write_text('{"a": "b"}')
    (tmp_path / "sparse").write_bytes(b"")
    os.truncate(tmp_path / "sparse", 2**40)
    code = ("import resource, sys, zcore, zcore.stores.reference.store\n"
            "resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))\n"
            "assert zcore.ReferenceStore(sys.argv[1]).get('a') == b'b'\n"
            "try:\n    zcore.ReferenceStore(sys.argv[2])\n"
            "except zcore.ReferenceFormatError as exc:\n    assert 'at the most' in str(exc)\n"
            "try:\n    zcore.ReferenceStore({'a': [sys.argv[2]]}, allowed=[sys.argv[2]]).get('a')\n"
            "except zcore.OutOfMemoryError as exc:\n    assert exc.nbytes == 2**40\n")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "refs.json", tmp_path / "sparse"],
                          capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit of address space")
@pytest.mark.skipif(zcore.show_config("dicts")["build"]["variant"] == "sanitize",
                    reason="the sanitizers keep their notes all over the address space")
def test_references_that_do_not_fit_into_memory():
    """Generated ones, and those of a document, ended in Python's MemoryError."""
    code = ("import resource, zcore, zcore.stores.reference.store, zcore.stores.reference.gen, jinja2\n"
            "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
            "resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 10**7,) * 2)\n"
            "gen = {'key': 'k' * 200 + '{{i}}', 'url': 'u', 'dimensions': {'i': {'stop': 10**6}}}\n"
            "try:\n    zcore.ReferenceStore({'version': 1, 'gen': [gen]})\n"
            "except zcore.OutOfMemoryError as exc:\n"
            "    assert 'the 1000000 references that gen makes' in str(exc) and exc.nbytes > 10**6\n"
            "    assert isinstance(exc.__cause__, MemoryError)\n"
            "else:\n    raise AssertionError\n"
            "table = zcore.kernel.refs.table.ReferenceTable()\n"
            "try:\n    table.put_data(b'k', bytes(10**7)); table.put_data(b'l', bytes(10**7))\n"
            "except zcore.OutOfMemoryError as exc:\n    assert exc.nbytes >= 2 * 10**7\n"
            "else:\n    raise AssertionError\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
