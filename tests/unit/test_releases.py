"""The version stands in one place, and every change is listed in the form that the list describes."""
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import zcore

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "CHANGELOG.md").exists(), reason="the sources are not there")


def test_version_stands_in_one_file():
    """Everything else asks for it: the build, the recipe for conda, the command."""
    files = [path for folder in ("zcore", "docs", "conda", ".ci", "examples", "benchmarks") for suffix in
             (".py", ".pyi", ".pyx", ".pxd", ".h", ".md", ".toml", ".yaml", ".pc", ".cmake")
             for path in (ROOT / folder).rglob(f"*{suffix}")]
    files += [path for path in ROOT.iterdir() if path.is_file() and path.name != "CHANGELOG.md" and path.suffix in
              (".py", ".toml", ".md", ".cff", ".in")]
    version = re.compile(rf"(?<![\d.]){re.escape(zcore.__version__)}(?![\d.])")
    found = [path.relative_to(ROOT).as_posix() for path in files if version.search(path.read_text("utf-8"))]
    assert found == ["zcore/config.py"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "zcore.config.__version__"}


def test_nothing_sends_anyone_to_the_other_project_of_this_name():
    """Of the package index, which has another `zcore`: the distribution is `zcore-array`."""
    files = [path for folder in ("zcore", "docs", "conda", "examples", "tests/unit/cli") for suffix in
             (".py", ".md", ".ipynb", ".yaml", ".txt") for path in (ROOT / folder).rglob(f"*{suffix}")]
    other = re.compile(r"""install (-\S+ )*["'`]?zcore(?![\w-])(?! first| in| from)|["'`]zcore\[""")
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
             for match in other.finditer(path.read_text("utf-8"))]
    assert found == []
    assert other.search('pip install "zcore[remote]"') and other.search("pip install -U zcore\n")
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"] == "zcore-array"


def test_changes_are_listed_in_their_form():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    assert releases[0] == "## Unreleased"
    assert [line for line in releases[1:] if not re.fullmatch(r"## \d+\.\d+\.\d+, \d{4}-\d{2}-\d{2}", line)] == []
    sections = {line for line in lines if line.startswith("*") or (line.startswith("**") and line.endswith("**"))}
    assert {"*Added*", "*Changed*", "*Fixed*", "**Bytes on disk**", "**Behaviour**"} >= {
        line for line in sections if re.fullmatch(r"\*+[\w ]+\*+", line)} > set()
    entries = [line for line in lines if re.match(r"\S", line) and not line.startswith(("#", "*"))]
    assert [line for line in entries[3:] if not line.startswith("- ")] == []


def test_no_hand_types_the_versions_that_ci_has_seen():
    """README and the pages of bridges name them between marks. What was measured, and "or newer", are other facts."""
    library = r"(zarr-python|xarray|dask|anndata|icechunk|virtualizarr|cubed|tensorstore|zarrs|kerchunk|obstore|fsspec)"
    typed = re.compile(rf"\b{library}\]?(\([^)]*\))?[ |(]+\d+\.\d+", re.IGNORECASE)
    other = re.compile(r"measur|median|rounds|\bms\b|milliseconds|times of|or newer|since|before|until", re.IGNORECASE)
    marked = re.compile(r"<!-- \w+: written by \.ci/versions\.py -->.*?<!-- end -->", re.DOTALL)
    n_marks = 0
    for page in (ROOT / "README.md", *sorted((ROOT / "docs" / "bridges").glob("*.md"))):
        text, n = marked.subn("", page.read_text("utf-8"))
        n_marks += n
        found = [match[0] for paragraph in re.split(r"\n\s*\n", text) if not other.search(paragraph)
                 for match in typed.finditer(paragraph)]
        assert not found, page.name
    assert n_marks == 3
    assert typed.search("| [dask](docs/bridges/dask.md) | 2026.8 |") and typed.search("Icechunk 1.1 uses it")


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="the scripts of CI are not there")
def test_a_release_needs_addresses_and_a_date(tmp_path):
    """No place of the project is known before somebody publishes it: the procedure asks for it, and stops without."""
    missing = runpy.run_path(str(ROOT / ".ci/packages.py"))["missing_of_a_release"]
    (tmp_path / "zcore").mkdir()
    (tmp_path / "zcore/config.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert missing(tmp_path) == ["pyproject.toml has no Source in [project.urls]",
                                 "pyproject.toml has no Documentation in [project.urls]",
                                 "CHANGELOG.md has no section of 1.2.3 with a date"]
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.3, 2026-12-01\n")
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nSource = "a"\nDocumentation = "b"\n')
    assert missing(tmp_path) == []
    assert "packages.py ready" in (ROOT / "docs/releasing.md").read_text("utf-8")
