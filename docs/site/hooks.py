"""What MkDocs calls while it builds the site.

The pages are written to be read in the repository as well, so they link to files outside `docs`: how to contribute, the
changes, examples, tests. The site gets a page for each of the first three kinds; a link to anything else becomes text.
The page of all rules is made here, too.
"""
import importlib.util
import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
# Pages for maintainers: a search shows those for users first.
INNER = re.compile(r"design|kernel\.md|conformance|contributing|changes|releasing|examples/")
LANGUAGES = {".c": "c", ".cpp": "cpp", ".f90": "fortran", ".py": "python", ".pyx": "cython"}


def on_config(config):
    """Show the version in the head of each page, and the repository, if pyproject.toml names it."""
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "zcore/config.py").read_text("utf-8"), re.MULTILINE)[1]
    config.site_name = f"zcore {version}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config.repo_url = project.get("urls", {}).get("Source")
    return config


def on_files(files, config):
    """Add the pages that are made of files outside `docs`, and the page of all rules."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=_from_docs((ROOT / source).read_text("utf-8"))))
    for path in sorted((ROOT / "examples").rglob("*.*")):
        if path.suffix in LANGUAGES:
            source = path.relative_to(ROOT).as_posix()
            text = f"# `{source}`\n\n```{LANGUAGES[path.suffix]}\n{path.read_text('utf-8')}```\n"
            files.append(File.generated(config, f"{source}.md", content=text))
    files.append(File.generated(config, "conformance.md", content=_conformance()))
    report = ROOT / "benchmarks/results/report.html"
    if report.exists():
        files.append(File.generated(config, "benchmarks/results/report.html", abs_src_path=str(report)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links out of `docs` to the pages that the site has for them; sessions get the colours of sessions."""
    folder = posixpath.dirname(page.file.src_uri)
    if INNER.match(page.file.src_uri):
        page.meta["search"] = {"boost": 0.3}

    def linked(found):
        text, target = found[1], found[2]
        outside = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if outside.startswith("docs/") or "://" in target or target.startswith("#"):
            return found[0]
        here = PAGES.get(outside) or (f"{outside}.md" if outside.startswith("examples/") else outside)
        if files.get_file_from_path(here) is None:
            return text
        return f"[{text}]({posixpath.relpath(here, folder or '.')})"

    markdown = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", linked, markdown)
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def on_post_page(output, page, config):
    """Lead the links of notebooks to pages: MkDocs does so for Markdown alone."""
    if not page.file.src_uri.endswith(".ipynb"):
        return output
    return re.sub(r'(href="[\w./-]+)\.(?:md|ipynb)(?=["#])', r"\1.html", output)


def on_post_build(config):
    """Write the search index as a script, too: a page that is opened as a file may fetch nothing else."""
    index = Path(config.site_dir, "search", "search_index.json")
    index.with_suffix(".js").write_text(f"var __index = {index.read_text('utf-8')}", "utf-8")


def _from_docs(text):
    """Return a page of the root as it has to be within `docs`."""
    return re.sub(r"\]\(docs/", "](", text)


def _conformance():
    spec = importlib.util.spec_from_file_location("make_page", ROOT / "docs/conformance/make_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    shown, _ = script.read_tests()
    return script.render(script.read_lists(), shown)
