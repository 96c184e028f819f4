"""docs/from-zarr.md: every line of its tables runs, here and with zarr-python, and no name is left out."""
import inspect
import re
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import zcore

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-zarr.md"
SECTIONS = {"The package": zcore, "Arrays": zcore.Array, "Groups": zcore.Group, "Keywords": None}
STATES = ("same", "differs", "no")


def rows(section):
    """Yield (names, state, text) of the table of a section."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[2] in STATES:
            yield re.findall(r"`(\w+)`", cells[1]), cells[2], cells[3]


def line_of(text):
    """Return the line of a row that is run: what it begins with."""
    return re.match(r"`([^`]+)`", text)[1]


LINES = [(section, names[0], state, line_of(text)) for section in SECTIONS for names, state, text in rows(section)
         if state != "no"]
NAMES = {section: {name: state for names, state, _ in rows(section) for name in names} for section in SECTIONS}


def run(package, line):
    """Return what a line gives in a folder of its own, None for a statement."""
    z = package.create_array("z.zarr", shape=(4, 6), chunks=(2, 3), dtype="i4")
    z[...] = np.arange(24).reshape(4, 6)
    g = package.create_group("g.zarr", attributes={"title": "t"})
    g.create_array("a", shape=(4,), dtype="i4")
    g.create_group("sub").create_array("b", shape=(2,), dtype="f4")
    names = {"zarr": package, "z": z, "g": g, "np": np}
    try:
        code = compile(line, line, "eval")
    except SyntaxError:
        exec(line, names)
        return None
    return eval(code, names)


def is_plain(value):
    """Whether a value means the same in every library."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (str, bool, int, np.ndarray, np.generic, np.dtype))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")     # of older names, as their rows say
@pytest.mark.parametrize(("section", "name", "state", "line"), LINES, ids=[f"{s}-{n}" for s, n, _, _ in LINES])
def test_line_runs(section, name, state, line, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    mine = run(zcore, line)
    if state == "same":
        zarr = pytest.importorskip("zarr", minversion="3")
        (tmp_path / "theirs").mkdir()
        monkeypatch.chdir(tmp_path / "theirs")
        # Its own pipeline, whatever a test before has left: zarrs lacks some kinds of selection.
        pipeline = {"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}
        with warnings.catch_warnings(), zarr.config.set(pipeline):
            warnings.simplefilter("ignore")
            theirs = run(zarr, line)
        assert is_plain(mine) == is_plain(theirs), (mine, theirs)
        if is_plain(mine):
            assert type(mine) is type(theirs) and np.array_equal(mine, theirs), (mine, theirs)


@pytest.mark.parametrize("section", SECTIONS)
def test_lines_use_the_name_that_they_are_about(section):
    names = [name for names, state, _ in rows(section) for name in names]
    assert len(names) == len(set(names)) and len(names) > 15
    for where, name, _, line in LINES:
        if where == section:
            assert re.search(rf"\b{name}\b", line) or name in ("print_debug_info", "errors"), line


@pytest.mark.parametrize("section", [section for section in SECTIONS if SECTIONS[section]])
def test_names_that_are_called_missing_are_missing(section):
    for name, state in NAMES[section].items():
        if name not in ("print_debug_info", "errors", "dtype"):
            is_there = name in dir(SECTIONS[section]) and hasattr(SECTIONS[section], name)
            assert is_there == (state != "no"), f"{name} is called {state}"


def test_keywords_that_are_called_missing_are_missing():
    parameters = inspect.signature(zcore.create_array).parameters
    for name, state in NAMES["Keywords"].items():
        assert (name in parameters) == (state != "no"), f"{name}= is called {state}"


@pytest.mark.parametrize("section", SECTIONS)
def test_no_name_of_zarr_python_is_left_out(section):
    zarr = pytest.importorskip("zarr", minversion="3")
    if section == "Keywords":
        public = set(inspect.signature(zarr.create_array).parameters)
    elif section == "The package":
        public = set(zarr.__all__)
        for name, value in vars(zarr).items():
            if not name.startswith("_") and (isinstance(value, types.ModuleType) or callable(value)):
                if getattr(value, "__module__", getattr(value, "__name__", "")).partition(".")[0] == "zarr":
                    public.add(name)
    else:
        public = {name for name in dir(getattr(zarr, section[:-1])) if not name.startswith("_")}
    assert len(public) > 15 and public - NAMES[section].keys() == set()


def test_errors_that_are_named_exist():
    text = PAGE.read_text(encoding="utf-8").split("\n## Errors\n", 1)[1].split("\n## ", 1)[0]
    mine = [cell.strip() for line in text.splitlines()[3:] if line.startswith("| `") for cell in [line.split("|")[2]]]
    assert len(mine) >= 5
    for cell in mine:
        name, *bases = re.findall(r"`(\w+)`", cell)
        assert issubclass(getattr(zcore, name), zcore.ZcoreError)
        for base in bases:
            assert issubclass(getattr(zcore, name), __builtins__[base])


def test_names_that_libraries_miss_are_missing():
    text = PAGE.read_text(encoding="utf-8").split("\n## Objects for other libraries\n", 1)[1].split("\n## ", 1)[0]
    names = [name for line in text.splitlines() if line.startswith("| `")
             for name in re.findall(r"`([\w.]+=?)", line.split("|")[1])]
    parameters = inspect.signature(zcore.create_array).parameters
    assert len(names) > 9
    for name in names:
        holder = zcore
        for part in name.split(".")[:-1]:
            holder = getattr(holder, part, None)
        if name.endswith("="):
            assert name == "dtype=" or name[:-1] not in parameters
        else:
            assert not hasattr(holder, name.rpartition(".")[2])
