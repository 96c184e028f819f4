"""Build the documentation site and look at it.

::

    python docs/site/check.py [--write]

Needs the extra ``docs`` and an installed zcore, since the notebooks are executed. A warning of MkDocs is an error. Then
each link of each built page is followed within the site, the search index is asked for a few words, and a browser takes
pictures: light and dark, wide and narrow. A picture is compared with the stored one as a grid of mean brightnesses, so
another font or a changed sentence makes no difference, and a page without its style does. ``--write`` stores them.
Without a browser the pictures are left out, and the last line says so.
"""
import argparse
import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = Path(__file__).with_name("screenshots")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PAGES = ("index", "start", "reference/array", "notebooks/tour")
SIZES = {"wide": (1280, 900), "narrow": (500, 900)}
SCHEMES = {"light": 1, "dark": 0}               # values of Blink's setting preferredColorScheme
CELL = 50                                       # pixels of a cell of the grid
MAX_MEAN, MAX_CELL = 12, 130                    # differences of brightness, of 255
WORDS = {"crc32c", "append", "kerchunk", "vindex", "fsync"}


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note one tag."""
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        self.links.update(attrs[name] for name in ("href", "src") if attrs.get(name) and tag != "base")


def build(site):
    """Build the site in a folder; a warning ends the program."""
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site], cwd=ROOT,
                   check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def broken_links(site):
    """Return the links within the site that lead nowhere, and the number of all."""
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    broken, n_links = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            n_links += 1
            target = path if not parts.path else Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path)))
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif target in pages and not anchor.startswith("__") and anchor not in pages[target].anchors:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken, n_links


def missing_words(site):
    """Return the words that the search index does not have."""
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    text = " ".join(f"{document['title']} {document['text']}" for document in index["docs"]).lower()
    return sorted(word for word in WORDS if word not in text)


def is_searched(browser, page):
    """Return whether the search of a page that is opened as a file finds a word."""
    with tempfile.TemporaryDirectory() as profile:
        shown = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                                "--virtual-time-budget=10000", "--dump-dom", f"{page.as_uri()}?q=fsync"],
                               check=True, capture_output=True, text=True, timeout=120).stdout
    return 'class="md-search-result__item"' in shown


def picture(browser, page, size, scheme, out):
    """Take a picture of the top of a page; return the mean brightness of each cell."""
    import matplotlib.image

    width, height = size
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--user-data-dir={profile}", f"--window-size={width},{height}", "--virtual-time-budget=5000",
                        f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={out}", page.as_uri()],
                       check=True, capture_output=True, timeout=120)
    pixels = 255 * matplotlib.image.imread(out)[..., :3].mean(-1)
    pixels = pixels[:height // CELL * CELL, :width // CELL * CELL]
    return pixels.reshape(height // CELL, CELL, width // CELL, CELL).mean((1, 3)).round().astype(int)


def compared(site, browser, write):
    """Return what is wrong with the pictures."""
    wrong = []
    for name in PAGES:
        seen = {}
        for scheme, number in SCHEMES.items():
            for size, lengths in SIZES.items():
                found = picture(browser, site / f"{name}.html", lengths, number, site / "picture.png")
                seen[f"{scheme}-{size}"] = found
        for kind, found in seen.items():
            stored = SCREENSHOTS / f"{name.replace('/', '-')}-{kind}.txt"
            if write:
                np.savetxt(stored, found, "%d")
                continue
            expected = np.loadtxt(stored)
            difference = np.abs(found - expected)
            if difference.mean() > MAX_MEAN or difference.max() > MAX_CELL:
                wrong.append(f"{name}, {kind}: differs from {stored.name} by {difference.mean():.0f} in the mean, "
                             f"{difference.max():.0f} at most")
        for size in SIZES:
            if seen[f"light-{size}"].mean() - seen[f"dark-{size}"].mean() < 100:
                wrong.append(f"{name}, {size}: the dark page is not dark")
    return wrong


def main():
    """Build and look; returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="store the pictures instead of comparing them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        build(site)
        broken, n_links = broken_links(site)
        missing = missing_words(site)
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        wrong = [f"a link leads nowhere: {link}" for link in broken]
        wrong += [f"the search does not find {word}" for word in missing]
        if browser is not None:
            wrong += [f"{name}: its search finds nothing, where it is opened as a file" for name in PAGES
                      if not is_searched(browser, site / f"{name}.html")]
            wrong += compared(site, browser, arguments.write)
        n_pages = len(list(site.rglob("*.html")))
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    pictures = "no browser, so no pictures" if browser is None else f"{len(PAGES) * len(SIZES) * len(SCHEMES)} pictures"
    print(f"{n_pages} pages, {n_links} links, {pictures}: {len(wrong)} wrong")
    return 1 if wrong or not n_links else 0


if __name__ == "__main__":
    sys.exit(main())
