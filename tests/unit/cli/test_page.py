"""The page of the demo: what is on it, that it stands for itself, and that it can be read in a real browser."""
import re
from pathlib import Path

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli.show.facts import stored_sizes
from zcore.cli.verbs.demo import demo
from zcore.cli.verbs.demo.page import objects_svg


@pytest.fixture
def page(save, capsys):
    """Return the page of a run on data with a hostile name."""
    name = save("<script>alert(1)</script>.npy".replace("/", "_"), np.arange(40000, dtype="<i4").reshape(200, 200))
    assert main(["demo", name, "--chunks", "50,100", "--out", "here"]) == 0
    assert capsys.readouterr().out.endswith(f"page    : here/{demo.PAGE}\n")
    return Path("here", demo.PAGE).resolve()


def test_what_is_on_the_page(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<h2>") == 1 + len(demo.FORMATS) + len(demo.COPIES) and text.count("data:image/png;base64,") == 1
    for name, ending, _ in demo.FORMATS:
        assert f"<td>{name}</td>" in text
        array = zcore.open(f"here/{page.parent.name and '<script>alert(1)<_script>'}{ending}")
        sizes = stored_sizes(array)
        assert f"{len(sizes)} of {len(sizes)} {'shards' if array.shards else 'chunks'} of" in text
    # Five of chunks, a shard, and the one chunk of ASDF.
    assert text.count('class="zc-cell"') == 5 * 8 + 2 and text.count("equal, whole and 8 parts") == 7
    assert "<script" not in text and not re.search(r"""(src|href)=["'](?!data:)""", text)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [420, 1200])
def test_in_a_browser(browser, page, contrasts, dark, width):
    browser.show(page, width=width, dark=dark)
    found = browser.run(contrasts)
    assert len(found) > 40 and min(found.values()) >= 4.5, {text: n for text, n in found.items() if n < 4.5}
    assert browser.run("document.querySelector('img').naturalWidth") > 500
    assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")
    assert (browser.complaints(), browser.requests()) == ([], [])


def test_without_a_picture(save, capsys):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    text = Path("zcore-demo", demo.PAGE).read_text(encoding="utf-8")
    assert "<img" not in text and "Relief" not in text and "equal, whole and" in text


@pytest.mark.parametrize(("keywords", "cells"), [
    ({"shape": (), "chunks": ()}, 1),
    ({"shape": 10, "chunks": 3}, 4),
    ({"shape": (3, 4, 5), "chunks": (1, 2, 2)}, 6),
    ({"shape": (0, 4)}, 0),
    ({"shape": (10**6, 4), "chunks": (1, 1)}, 0),
])
def test_grids(keywords, cells):
    array = zcore.create_array(zcore.MemoryStore(), dtype="i4", **keywords)
    if array.size and array.size < 10**6:
        array[...] = 7
    drawn = objects_svg(array, stored_sizes(array))
    assert drawn.count("<rect") == cells and drawn.startswith("<p>")
