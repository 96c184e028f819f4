"""Arrays and groups in a notebook: HTML that is well-formed, escaped, bounded, and right in a real browser."""
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.nodes import html

HOSTILE = ['<script>window.harm = 1</script>', '"><img src=x onerror="window.harm = 1">', "</style></div></details>",
           "&lt;b&gt;&amp;", "\x00\x1b[2J\n\ud800", "javascript:alert(1)", "' onmouseover='window.harm = 1"]
ALLOWED = {"style": set(), "div": {"class"}, "span": {"class", "title"}, "table": {"class"}, "tr": set(), "th": set(),
           "td": set(), "details": {"open"}, "summary": set(), "ul": set(), "li": set()}


class Strict(HTMLParser):
    """A parser that takes only what the pages are made of, every element closed in its turn."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.texts, self.tags = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= ALLOWED[tag], (tag, attrs)
        self.tags.append(tag)
        if not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)


@pytest.fixture
def group():
    """Return a hierarchy with hostile attributes, two levels, shards, and a damaged member."""
    top = zcore.create_group(zcore.MemoryStore(), attributes=dict.fromkeys(HOSTILE[:4] + HOSTILE[5:], HOSTILE[:4]))
    t2m = top.create_array("2016/t2m", shape=(48, 90, 180), chunks=(8, 30, 60), shards=(24, 90, 180), dtype="f4",
                           dimension_names=("<b>time", "lat", "lon"), attributes={"units": "K"})
    assert t2m.shards
    top.create_array("height", shape=(40, 60), chunks=(20, 30), dtype="i2")
    top.create_array("bad", shape=3, dtype="i4")
    top.store.set("bad/zarr.json", b'{"zarr_format": "<script>"}')
    return top


def test_a_group_is_a_tree_of_what_it_holds(group):
    page = Strict(group._repr_html_())
    text = " ".join(page.texts)
    assert page.tags.count("li") == 4
    for words in ("2016/", "t2m", "(48, 90, 180) float32", "height", "(40, 60) int16", "bad (MetadataError)",
                  "MemoryStore Group, format 3", "6 attributes", "units"):
        assert words in re.sub(r"\s+", " ", text), words


def test_an_array_is_a_table(group):
    page = Strict(group["2016/t2m"]._repr_html_())
    text = " ".join(page.texts)
    for words in ("(48, 90, 180) = 777600 elements", "shards of (24, 90, 180)", "(8, 30, 60)", "<b>time, lat, lon",
                  "BloscCodec", '"K"'):
        assert words in text, words


@each("name", HOSTILE)
def test_names_and_attributes_are_text_and_nothing_else(name):
    store = zcore.MemoryStore()
    zcore.create_group(store, zarr_format=2)
    store.set(".zattrs", json.dumps({name: name}).encode())
    group = zcore.open_group(store)
    assert list(group.attrs) == [name]
    page = Strict(group._repr_html_())
    assert page.texts.count(html.printable(name)) == 1
    assert group._repr_html_().encode("utf-8").isascii() or "\x00" not in group._repr_html_()
    assert "\x1b" not in group._repr_html_()


def test_hostile_members_dimensions_and_errors(tmp_path):
    group = zcore.create_group(tmp_path / "g")
    for i, name in enumerate(HOSTILE[1:2] + ["<i>", "a&b", "\x1b[1m"]):
        if "/" in name:
            continue
        with pytest.warns(UserWarning, match="not portable"):
            group.create_array(name, shape=(2, 2), dtype="i4", dimension_names=(HOSTILE[i], HOSTILE[1]))
    page = Strict(group._repr_html_())
    assert "a&b " in page.texts and "\\x1b[1m " in page.texts and "<i> " in page.texts


def test_long_things_are_cut():
    group = zcore.create_group(zcore.MemoryStore(), attributes={f"a{i}": "x" * 1000 for i in range(150)})
    document = zcore.create_array(zcore.MemoryStore(), shape=1, dtype="i4").store.get("zarr.json")
    for i in range(html.MAX_NODES + 10):
        group.store.set(f"m{i}/zarr.json", document)
    text = group._repr_html_()
    page = Strict(text)
    assert page.tags.count("li") == html.MAX_NODES and "only the first 200 nodes are shown" in page.texts
    assert "and 50 more" in page.texts and len(text) < 10**6


def test_deep_hierarchies_do_not_end_in_a_recursion():
    group = zcore.create_group(zcore.MemoryStore())
    group.create_group("/".join(["g"] * 150))
    assert Strict(group._repr_html_()).tags.count("li") == 150


def test_nothing_is_read_or_listed_of_an_array(monkeypatch):
    array = zcore.create_array(zcore.MemoryStore(), data=np.arange(60).reshape(6, 10), chunks=(2, 5))
    asked = []
    for method in ("list_dir", "list_prefix", "getsize", "getsize_prefix"):
        monkeypatch.setattr(type(array.store), method, lambda self, *args: asked.append(args) or 1 / 0)
    assert Strict(array._repr_html_()).tags.count("table") == 1 and asked == []


def test_a_group_that_is_gone_says_so(tmp_path):
    group = zcore.create_group(tmp_path / "g")
    (tmp_path / "g" / "zarr.json").unlink()
    assert any("does not exist" in text for text in Strict(group._repr_html_()).texts)


# in a browser


@pytest.fixture
def page(tmp_path, group):
    """Return a file with the group and an array, as a notebook would show them."""
    path = tmp_path / "page.html"
    path.write_text('<!doctype html><meta charset="utf-8"><title>page</title><body style="margin:0">'
                    f'{group._repr_html_()}{group["2016/t2m"]._repr_html_()}', encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everything_can_be_read_light_and_dark(browser, page, contrasts, dark):
    browser.show(page, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((d) => d.open = true)")
    found = browser.run(contrasts)
    assert len(found) > 30 and min(found.values()) >= 4.5, {text: n for text, n in found.items() if n < 4.5}
    back = browser.run("getComputedStyle(document.querySelector('.zcore')).backgroundColor")
    assert back == ("rgb(22, 25, 29)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize(("scheme", "back"), [("slate", "rgb(22, 25, 29)"), ("default", "rgb(255, 255, 255)")])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_of_mkdocs_chooses_light_or_dark(browser, page, scheme, back, dark):
    """And not the reader's system, nor the mark of a light notebook, which mkdocs-jupyter always sets."""
    text = page.read_text("utf-8").replace("<body", f'<body data-md-color-scheme="{scheme}"')
    head, _, nodes = text.partition("<style>")
    page.write_text(f'{head}<div data-jp-theme-light="true"><style>{nodes}</div>', encoding="utf-8")
    browser.show(page, dark=dark)
    assert browser.run("getComputedStyle(document.querySelector('.zcore')).backgroundColor") == back


def test_a_page_runs_nothing_and_asks_for_nothing(browser, page):
    browser.show(page)
    assert browser.run("window.harm === undefined && document.querySelectorAll('script, img, iframe').length") == 0
    assert (browser.complaints(), browser.requests()) == ([], [])


def test_the_tree_opens_by_a_click(browser, page):
    browser.show(page)
    place = browser.run("""(() => {
        const summary = [...document.querySelectorAll("li summary")].find((s) => s.textContent.startsWith("t2m"));
        window.details = summary.parentElement;
        const box = summary.getBoundingClientRect();
        return [details.open, details.querySelector("table").checkVisibility(), box.x + 20, box.y + 8]; })()""")
    assert place[:2] == [False, False]
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=place[2], y=place[3], button="left", clickCount=1)
    assert browser.run("[details.open, details.querySelector('table').checkVisibility()]") == [True, True]


@pytest.mark.parametrize("width", [360, 1200])
def test_a_page_is_no_wider_than_its_window(browser, page, width):
    browser.show(page, width=width)
    browser.run("document.querySelectorAll('details').forEach((d) => d.open = true)")
    assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")
