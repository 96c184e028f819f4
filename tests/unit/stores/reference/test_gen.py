"""The member `gen` of reference sets: "References specification", version 1."""
import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

import zcore
from tests.each import each
from zcore.errors import ReferenceFormatError, UnsupportedError
from zcore.stores.reference.gen import MAX_EXPRESSIONS, MAX_GENERATED_TEXT, Generation
from zcore.stores.reference.templates import Templates

SEED_TEMPLATES = {"u": "server.domain/path", "f": "{{c}}"}
SEED = {"key": "gen_key{{i}}", "url": "http://{{u}}_{{i}}", "offset": "{{(i + 1) * 1000}}", "length": "1000",
        "dimensions": {"i": {"stop": 5}}}
TEXTS = {"key": "k{{i}}", "url": "u", "dimensions": {"i": {"stop": 3}}}
LARGEST = 2**63 - 1

pytestmark = pytest.mark.usefixtures("jinja2")


@pytest.fixture(scope="module")
def jinja2():
    return pytest.importorskip("jinja2")


def references(*items, templates=SEED_TEMPLATES, **options):
    """Return what the items generate, a list of (key, URL, offset, length)."""
    return list(Generation(list(items), Templates(templates), **options).references())


def keys(**dimensions):
    """Return the keys of an item that names all its variables."""
    text = ",".join(f"{{{{{name}}}}}" for name in dimensions)
    return [key for key, *_ in references({"key": text, "url": "u", "dimensions": dimensions})]


def one_by_one(item, templates):
    """Return what an item generates by rendering each text for each element alone."""
    given, names = Templates(templates), list(item["dimensions"])
    ranges = [values if isinstance(values, list)
              else range(values.get("start", 0), values["stop"], values.get("step", 1))
              for values in item["dimensions"].values()]
    found = []
    for values in itertools.product(*ranges):
        variables = dict(zip(names, values, strict=True))
        found.append((*(given.render(item[name], variables) for name in ("key", "url")),
                      *(int(given.render(item[name], variables)) for name in ("offset", "length"))))
    return found


def test_example():
    """RF-GEN-07: exactly the entries that the specification lists."""
    assert references(SEED) == [
        ("gen_key0", "http://server.domain/path_0", 1000, 1000),
        ("gen_key1", "http://server.domain/path_1", 2000, 1000),
        ("gen_key2", "http://server.domain/path_2", 3000, 1000),
        ("gen_key3", "http://server.domain/path_3", 4000, 1000),
        ("gen_key4", "http://server.domain/path_4", 5000, 1000),
    ]


def test_dimension_as_a_list():
    """RF-GEN-07: the variable "could have been provided in array form"."""
    assert references({**SEED, "dimensions": {"i": [0, 1, 2, 3, 4]}}) == references(SEED)


@pytest.mark.parametrize("gen", [None, {}, "x", 1, SEED])
def test_gen_is_a_list(gen):
    """RF-GEN-01."""
    with pytest.raises(ReferenceFormatError, match="^gen: expected a list of objects, found ") as caught:
        Generation(gen, Templates({}))
    assert caught.value.member == "gen"


@each("item, reason", [
    (None, "an object"), ([], "an object"), ("x", "an object"), ({}, "found no dimensions"),
    *((({name: value for name, value in SEED.items() if name != missing}), f"found no {missing}")
      for missing in ("key", "url", "dimensions")),
    ({name: value for name, value in SEED.items() if name != "offset"}, "found length alone"),
    ({name: value for name, value in SEED.items() if name != "length"}, "found offset alone"),
    ({**SEED, "size": "1"}, "found 'size'"), ({**SEED, "x" * 1000: "1"}, r"found 'x+\.\.\.'$"),
])
def test_members_of_an_item(item, reason):
    """RF-GEN-01."""
    with pytest.raises(ReferenceFormatError, match=reason) as caught:
        Generation([SEED, item], Templates(SEED_TEMPLATES))
    assert caught.value.member == "gen[1]"


@each("name", ["key", "url", "offset", "length"])
@each("value", [None, True, 1.5, [], {}, -1, 2**63, ["1"]])
def test_types_of_members(name, value):
    """RF-GEN-01, RF-GEN-06."""
    with pytest.raises(ReferenceFormatError, match=f"^gen\\[0\\].{name}: expected a text") as caught:
        Generation([{**SEED, name: value}], Templates(SEED_TEMPLATES))
    assert caught.value.member == f"gen[0].{name}"


def test_neither_offset_nor_length_is_the_whole_target():
    """RF-GEN-01."""
    assert references(TEXTS) == [(f"k{i}", "u", 0, None) for i in range(3)]


@each("dimensions, reason", [
    (None, "a variable at least"), ({}, "a variable at least"), ([], "a variable at least"),
    ("i", "a variable at least"),
    ({"i": 5}, "stop at least"), ({"i": None}, "stop at least"), ({"i": "5"}, "stop at least"),
    ({"i": {}}, "stop at least"), ({"i": {"start": 1}}, "stop at least"),
    ({"i": {"stop": 1, "by": 1}}, "stop at least"),
    ({"i": {"stop": "5"}}, "integers"), ({"i": {"stop": 5.0}}, "integers"), ({"i": {"stop": True}}, "integers"),
    ({"i": {"stop": None}}, "integers"), ({"i": {"start": None, "stop": 1}}, "integers"),
    ({"i": {"stop": 5, "step": 0}}, "step other than 0"), ({"i": {"stop": 5, "step": 1.0}}, "integers"),
    ({"i": {"stop": 2**63}}, "64 bits"), ({"i": {"start": -2**63 - 1, "stop": 0}}, "64 bits"),
    ({"i": [1, "2"]}, "integers"), ({"i": [1.0]}, "integers"), ({"i": [True]}, "integers"), ({"i": [[1]]}, "integers"),
    ({"i": [None]}, "integers"), ({"i": [2**63]}, "64 bits"), ({"i": [10**5000]}, "64 bits"),
    ({"1": [1]}, "identifier"), ({"": [1]}, "identifier"), ({"a b": [1]}, "identifier"), ({"self": [1]}, "identifier"),
    ({"true": [1]}, "identifier"), ({1: [1]}, "identifier"),
])
def test_dimensions(dimensions, reason):
    """RF-GEN-02."""
    with pytest.raises(ReferenceFormatError, match=reason) as caught:
        Generation([{**TEXTS, "key": "k", "dimensions": dimensions}], Templates({}))
    assert caught.value.member.startswith("gen[0].dimensions")


@each("start, stop, step", [*itertools.product([-3, 0, 2, 7], [-4, 0, 3, 8], [-3, -1, 1, 2, 9])])
def test_ranges_as_in_python(start, stop, step):
    """RF-GEN-03."""
    assert keys(i={"start": start, "stop": stop, "step": step}) == [str(i) for i in range(start, stop, step)]


@each("values, found", [
    ({"stop": 5}, range(5)), ({"stop": 0}, ()), ({"stop": -1}, ()), ([], ()), ([3, 1, 3], (3, 1, 3)),
    ({"start": -2**63, "stop": 2**63 - 1, "step": 2**63 - 1}, (-2**63, -1, 2**63 - 2)),
    ({"start": 2**63 - 1, "stop": -2**63, "step": -2**63}, (2**63 - 1, -1)),
    ([2**63 - 1, -2**63], (2**63 - 1, -2**63)),
])
def test_values_of_a_variable(values, found):
    """RF-GEN-02, RF-GEN-03: an empty range gives no references; values have up to 64 bits."""
    assert keys(i=values) == [str(i) for i in found]


def test_first_variable_is_slowest():
    """RF-GEN-04."""
    assert keys(b=[1, 2], a={"stop": 2}, c=[5, 3]) == [
        "1,0,5", "1,0,3", "1,1,5", "1,1,3", "2,0,5", "2,0,3", "2,1,5", "2,1,3"]
    assert keys(a=[1, 2], b=[]) == []


def test_all_texts_see_variables_and_templates():
    """RF-GEN-05."""
    item = {"key": "{{u}}/{{i}}", "url": "{{f(c=i * 2)}}", "offset": "{{ '%d' % i }}{{z}}", "length": "{{ one }}",
            "dimensions": {"i": [3]}}
    assert references(item, templates={**SEED_TEMPLATES, "z": "0", "one": "1"}) == [
        ("server.domain/path/3", "6", 30, 1)]


@pytest.mark.parametrize("name", ["u", "f"])
def test_variable_named_as_a_template(name):
    """RF-GEN-05: refused by name."""
    with pytest.raises(ReferenceFormatError, match=f"both of {name}$"):
        Generation([{**TEXTS, "key": "k", "dimensions": {"i": [1], name: [1]}}], Templates(SEED_TEMPLATES))


@each("texts, error", [
    ({"key": "{{j}}"}, ReferenceFormatError), ({"url": "{{ j + 1 }}"}, ReferenceFormatError),
    ({"url": "{{"}, ReferenceFormatError), ({"offset": "{% x %}"}, UnsupportedError),
    ({"length": "{{ i.real }}"}, UnsupportedError), ({"url": "{{ 'a' * 10 ** 9 }}"}, ReferenceFormatError),
])
def test_texts_are_looked_at_although_nothing_is_generated(texts, error):
    """RF-GEN-05, RF-TPL-08."""
    with pytest.raises(error, match=rf"^gen\[0\].{next(iter(texts))}: "):
        Generation([{**SEED, **texts, "dimensions": {"i": []}}], Templates(SEED_TEMPLATES))


@each("value, integer", [
    (0, 0), (7, 7), (LARGEST, LARGEST), ("7", 7), (" 7\n", 7), ("\t007 ", 7), ("{{i}}", 3), (" {{ i }} ", 3),
    ("{{i}}0", 30), ("{{ i * 2 }}{{ i }}", 63), ("{{ '%05d' % i }}", 3), (str(LARGEST), LARGEST), ("0" * 40 + "1", 1),
    ("{{ i + 9223372036854775804 }}", LARGEST), ("{{ 2 ** 62 + (2 ** 62 - 4) + i }}", LARGEST),
])
def test_offset_and_length(value, integer):
    """RF-GEN-06: integers, or decimal text, blanks trimmed."""
    item = {**TEXTS, "dimensions": {"i": [3]}}
    assert references({**item, "offset": value, "length": 0})[0][2:] == (integer, 0)
    assert references({**item, "offset": 0, "length": value})[0][2:] == (0, integer)


@each("text", [
    "", " ", "x", "-1", "+1", "1.0", "1e3", "1_000", "0x10", "1 2", "١", "{{ 'x' }}", "{{ i - 4 }}", "-{{i}}",
    "{{ i / 1 }}", "{{ i / 2 }}", "{{ i * 1.0 }}", "{{ i }} {{ i }}", "{{ i }}.0", str(2**63), "{{i}}" + "0" * 18,
    "9" * 100, "{{ 9223372036854775807 - i + i - 2 * i }}0", "{{ -i }}", "{{i}}\x1d", "5\x1f", "\x1c{{ i }}",
])
@each("name", ["offset", "length"])
def test_text_that_is_no_offset(name, text):
    """RF-GEN-06, RF-TPL-10."""
    item = {**TEXTS, "offset": 0, "length": 0, name: text, "dimensions": {"i": [3] * 3 + [10]}}
    message = r"expected an integer of 0 to 2\*\*63 - 1, found "
    if "/" in text:
        message += r"'[0-9.]+' for i = 3; / gives fractions, // does not"
    with pytest.raises(ReferenceFormatError, match=rf"^gen\[0\].{name}: {message}"):
        references(item)


def test_first_values_that_give_no_offset_are_named():
    """RF-GEN-06."""
    item = {**TEXTS, "offset": "{{ 5 - i * j }}", "length": 1, "dimensions": {"i": {"stop": 4}, "j": {"stop": 3}}}
    with pytest.raises(ReferenceFormatError, match="found '-1' for i = 3, j = 2$"):
        references(item)


@pytest.mark.parametrize("offset, length", [(LARGEST, 1), (1, LARGEST), ("{{ 9223372036854775807 - i }}", "4")])
def test_end_of_a_reference_has_63_bits(offset, length):
    """RF-GEN-06."""
    with pytest.raises(ReferenceFormatError, match=r"^gen\[0\].length: expected an end of 63 bits"):
        references({**TEXTS, "offset": offset, "length": length, "dimensions": {"i": {"stop": 4}}})


def test_later_items_and_elements_come_later():
    """RF-GEN-08: in a dictionary, later ones win."""
    first = {**TEXTS, "url": "{{i}}"}
    second = {**TEXTS, "url": "second", "dimensions": {"i": [1, 5]}}
    third = {**TEXTS, "key": "k9", "url": "{{i}}"}
    assert Generation([first, second, third], Templates({})).count == 8
    assert {key: url for key, url, *_ in references(first, second, third)} == {
        "k0": "0", "k1": "second", "k2": "2", "k5": "second", "k9": "2"}


@each("dimensions", [
    {"i": {"stop": 10**12}}, {"i": {"stop": 10**6}, "j": {"stop": 10**6}}, {"i": {"start": -2**63, "stop": 2**63 - 1}},
    {f"v{i}": {"stop": 2**62} for i in range(2000)}, {"i": {"start": 2**63 - 1, "stop": -2**63, "step": -1}},
    {"i": {"stop": 2**24 + 1}},
], ids=lambda dimensions: f"{len(dimensions)} variables")
def test_what_would_be_generated_is_counted_before(dimensions):
    """RF-GEN-10: neither time nor memory is spent on it."""
    tracemalloc.start()
    try:
        with pytest.raises(ReferenceFormatError, match=r"^gen\[0\].dimensions: expected 16777216 references") as caught:
            Generation([{**TEXTS, "dimensions": dimensions}], Templates({}))
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.member == "gen[0].dimensions"


def test_limit_holds_for_all_items_together():
    """RF-GEN-10."""
    items = [{**TEXTS, "dimensions": {"i": {"stop": 4}}}, {**TEXTS, "dimensions": {"i": [1, 2], "j": [1, 2]}}]
    assert Generation(items, Templates({}), limit=8).count == 8
    with pytest.raises(ReferenceFormatError, match=r"^gen\[1\].dimensions: expected 7 "):
        Generation(items, Templates({}), limit=7)
    with pytest.raises(ReferenceFormatError, match=r"^gen\[0\].dimensions: expected 3 "):
        Generation(items, Templates({}), limit=3)


def test_empty_product_beside_a_huge_one():
    """RF-GEN-03, RF-GEN-10."""
    generation = Generation([{**TEXTS, "dimensions": {"i": {"stop": 10**12}, "j": [], "k": {"stop": 10**12}}}],
                            Templates({}))
    assert generation.count == 0
    assert list(generation.references()) == []


def test_a_million_references_are_made_one_by_one():
    """RF-GEN-10: no more than some are in memory."""
    item = {"key": "x/{{i}}.{{j}}", "url": "http://{{u}}_{{i // 10}}", "offset": "{{ (i * 100 + j) * 4096 }}",
            "length": "4096", "dimensions": {"i": {"stop": 10000}, "j": {"stop": 100}}}
    generation = Generation([item], Templates(SEED_TEMPLATES))
    assert generation.count == 10**6
    found = generation.references()
    tracemalloc.start()
    try:
        for i, j in itertools.product(range(40), range(100)):
            assert next(found) == (f"x/{i}.{j}", f"http://server.domain/path_{i // 10}", (i * 100 + j) * 4096, 4096)
        assert tracemalloc.get_traced_memory()[1] < 256 << 10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["key", "url"])
@pytest.mark.parametrize("text", [
    "x" * (MAX_GENERATED_TEXT + 1), "x" * MAX_GENERATED_TEXT + "{{i}}", "{{ 'x' * (5000 + i) }}", "{{ 'x' * 5000 }}",
    "{{i}}" * (MAX_EXPRESSIONS + 1), "{{ '%999d' % i }}" * 5, "{{ f(c='x' * 3000) }}{{ ('x' * 3000) ~ i }}",
], ids=lambda text: f"{text[:20]} of {len(text)}")
def test_generated_texts_are_bounded(name, text):
    """RF-GEN-10, RF-TPL-09: a count that is bounded bounds memory."""
    with pytest.raises(ReferenceFormatError, match=rf"^gen\[0\].{name}: expected .* at the most"):
        references({**TEXTS, name: text})


def test_longest_texts_that_are_allowed():
    """RF-GEN-10."""
    item = {**TEXTS, "key": "x" * (MAX_GENERATED_TEXT - 1) + "{{i}}", "url": "{{i}}" * MAX_EXPRESSIONS}
    assert references(item)[2] == ("x" * (MAX_GENERATED_TEXT - 1) + "2", "2" * MAX_EXPRESSIONS, 0, None)


DIMENSIONS = {"i": {"start": -3, "stop": 9, "step": 4}, "j": [7, 0, 7], "k": {"stop": 1}, "m": {"stop": 4}}


@pytest.mark.parametrize("text", [
    "a", "{{u}}", "{{i}}", "{{m}}{{i}}", "{{j}}/{{j}}", "{{k}}", "{{ '%03d' % m }}.{{i}}", "{{ '%d-%d' % (i, m) }}%",
    "%s%d{{i}}%%{{ f(c=j) }}", "{{ i // 2 }}{{ j % 3 }}", "{{ i ** 2 + m ** 3 - j * k }}", "{{ i ** m }}", "{{ -i }}",
    "{{ 2 ** m }}", "{{ (i * 2 ** 40) * (m * 2 ** 16) }}", "{{ m / 2 }}", "{{ i ~ j ~ k ~ m }}", "{{ i % -3 // 2 }}",
    "{{ (-7) // (m + 1) }}", "{{ (m + 1) // (j - 3) }}", "{{ '' }}{{i}}{# c #}\n",
])
def test_references_are_what_each_element_alone_is(text):
    """RF-GEN-05, RF-GEN-10."""
    item = {"key": text, "url": text, "offset": "{{ i * i + m * 10 ** 15 }}", "length": "{{ j }}{{ m }}",
            "dimensions": DIMENSIONS}
    assert references(item) == one_by_one(item, SEED_TEMPLATES)


@each("expression", [
    "i * 2 ** 62 // i", "2 ** 62 + i * 2 ** 62", "m // (i - 1)", "m % i", "i ** 40 ** 2", "(i + 4) ** 63", "m ** -i",
    "9223372036854775807 + m", "-(i * 3074457345618258602 - 3)", "m ** (i * 100)", "(i - 1) ** 64", "2 ** (60 + m)",
])
def test_arithmetic_that_may_leave_64_bits(expression):
    """RF-GEN-10, RF-TPL-09: as each element alone, result or error."""
    item = {**TEXTS, "key": f"{{{{ {expression} }}}}", "offset": 0, "length": "0"}
    for start in (-3, 1):
        item["dimensions"] = {"i": {"start": start, "stop": start + 4}, "m": [5, 0, 2]}
        try:
            expected = one_by_one({**item, "offset": "0"}, {})
        except ReferenceFormatError as exc:
            with pytest.raises(ReferenceFormatError) as caught:
                references(item)
            assert str(caught.value).partition(" cannot for ")[2] == str(exc).partition(" cannot for ")[2]
        else:
            assert references(item) == expected


def test_as_fsspec_generates_it():
    """RF-GEN-03, RF-GEN-04, RF-GEN-07."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.reference import ReferenceFileSystem
    item = {"key": "{{i}}.{{ '%02d' % j }}", "url": "http://{{u}}/{{ f(c=i) }}", "offset": "{{ (i * 3 + j) * 10 }}",
            "length": "{{ j + 1 }}", "dimensions": {"i": {"start": 4, "stop": 0, "step": -2}, "j": [0, 5, 2]}}
    document = {"version": 1, "templates": dict(SEED_TEMPLATES), "gen": [item, SEED], "refs": {}}
    store = ReferenceFileSystem(document, simple_templates=False, fs=fsspec.filesystem("file"),
                                skip_instance_cache=True)
    assert [(key, *value) for key, value in store.references.items()] == references(item, SEED)


MEASURED = """
import json, resource, sys
import zcore
def peak():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Not by getrusage, which tells of the process that was forked before this program began, too.
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
before = peak()
store = zcore.ReferenceStore(sys.argv[1], max_generated=10**6)
assert len(store._table) == 10**6 + 1
print(before, peak())
array = zcore.open(store, path="x")
assert array[999, 999] == 255 and array[1, 2] == 2 and store.get("x/5.7") == bytes([7])
"""


@pytest.mark.slow
def test_a_million_references_in_300_megabytes(tmp_path):
    """RF-GEN-10: all of the process, with Python and NumPy."""
    (tmp_path / "t.bin").write_bytes(bytes([*range(255), 255]) * 4)
    (tmp_path / "refs.json").write_text(json.dumps({
        "version": 1, "templates": {"u": "t"},
        "refs": {"x/.zarray": {"zarr_format": 2, "shape": [1000, 1000], "chunks": [1, 1], "dtype": "|u1", "order": "C",
                               "compressor": None, "filters": None, "fill_value": 0}},
        "gen": [{"key": "x/{{i}}.{{j}}", "url": "{{u}}.bin", "offset": "{{ j % 256 + (j // 999) * 24 }}", "length": "1",
                 "dimensions": {"i": {"stop": 1000}, "j": {"stop": 1000}}}]}))
    environment = {**os.environ, "PYTHONPATH": str(Path(zcore.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", MEASURED, str(tmp_path / "refs.json")], env=environment, check=True,
                          capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert after <= 300 << 20 and after - before <= 200 << 20
