"""The programs on the pages of `docs/embedding`: they are built as they stand, run, and misused."""
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.unit.embed.header import CallError, Handle, asked
from tests.unit.embed.test_programs import build, needs, run

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "embedding"
# What stands where float64 of two dimensions is expected; the word is one that the error has to say.
OTHERS = {"float32": ("f4", (100, 200)), "complex128": ("c16", (100, 200)), ">f8": (">f8", (100, 200)),
          "3 dimensions": ("f8", (100, 200, 2)), "1 dimensions": ("f8", (20000,))}


def example(page, language):
    """Return the first block of a language on a page."""
    return re.search(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(encoding="utf-8"),
                     re.MULTILINE | re.DOTALL)[1]


def make(place, dtype="f8", shape=(100, 200)):
    """Create an array whose last element is 19999."""
    n = int(np.prod(shape))
    return zcore.create_array(place, data=np.arange(20000 - n, 20000).reshape(shape).astype(dtype), zarr_format=2)


@pytest.fixture(scope="module", params=[("c.md", "c", "cc"), ("cpp.md", "cpp", "c++ -std=c++17")],
                ids=["c", "c++"])
def program(request, tmp_path_factory):
    page, language, compiler = request.param
    folder = tmp_path_factory.mktemp("program")
    source = folder / f"program.{language}"
    source.write_text(example(page, language))
    return build(folder, compiler, source, "-Wextra", "-Werror")


@needs("cc", "c++")
def test_a_program_reads_what_it_was_written_for(program, tmp_path):
    make(tmp_path / "a")
    assert run(program, tmp_path / "a") == "19999\n"
    assert "does not exist" in run(program, tmp_path / "nothing", status=1)
    make(tmp_path / "small", shape=(99, 200))
    assert "the count is 100, the array has 99" in run(program, tmp_path / "small", status=1)


@needs("cc", "c++")
@pytest.mark.thinned(2, "program", "said")
@pytest.mark.parametrize("said", OTHERS)
def test_a_program_refuses_every_other_array(program, tmp_path, said):
    make(tmp_path / "a", *OTHERS[said])
    refused = run(program, tmp_path / "a", status=1)
    assert said in refused and str(tmp_path / "a") in refused


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Build the module on the page of Cython; return its folder."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    folder = tmp_path_factory.mktemp("module")
    source = folder / "rows.pyx"
    source.write_text(example("cython.md", "cython"))
    extension = Extension("rows", [str(source)], include_dirs=[zcore.get_include()], extra_compile_args=["-O0", "-g0"])
    (extension,) = cythonize([extension], include_path=[str(Path(zcore.__file__).parents[1])], quiet=True,
                             build_dir=str(folder))
    command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(folder)
    command.ensure_finalized()
    command.run()
    return folder


CALLS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, rows, zcore
z, row = zcore.open(sys.argv[2] + "/a"), np.full(200, -1.0)
rows.read_row(z, 99, row)
print(row[0], row[-1])
for call in sys.argv[3:]:
    try:
        exec(call)
        print("nothing")
    except Exception as exc:
        print(repr(exc))
"""


@needs("cc")
def test_a_module_in_cython_reads_a_row_and_refuses_every_other_array(module, tmp_path):
    """In another process, which misuse may end."""
    make(tmp_path / "a")
    wrong = {"rows.read_row(z, 100, row)": "do not lie in an array",
             "rows.read_row(z, 0, np.zeros(201))": "the count is 201, the array has 200",
             "rows.read_row(z, 0, np.zeros(0))": "IndexError", "rows.read_row(z, 0, None)": "TypeError",
             "rows.read_row(z[...], 0, row)": "is no array"}
    for said, other in OTHERS.items():
        make(tmp_path / said, *other)
        wrong[f"rows.read_row(zcore.open({str(tmp_path / said)!r}), 0, np.zeros(20))"] = said
    read, *refused = run(sys.executable, "-c", CALLS, module, tmp_path, *wrong).splitlines()
    assert read == "19800.0 19999.0" and len(refused) == len(wrong)
    for (call, said), found in zip(wrong.items(), refused, strict=True):
        assert said in found and (said not in OTHERS or str(tmp_path / said) in found), call


@needs("c++")
def test_the_writer_in_cpp(tmp_path):
    """Its class, in a program that gives it ten frames."""
    blocks = re.findall(r"^```cpp\n(.*?)^```$", (PAGES / "cpp.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    source = tmp_path / "frames.cpp"
    source.write_text(f"""#include <cstdio>
#include <stdexcept>
#include <vector>
#include "zcore.h"
{blocks[1]}
int main(int, char **arguments)
try {{
    zcore_error error;
    if (zcore_start(&error) != 0) throw std::runtime_error(error.message);
    zcore_array *array = zcore_open(arguments[1], "r+", nullptr, &error);
    Writer writer(array);
    for (uint16_t i = 0; i < 10; i++) writer.append(std::vector<uint16_t>(6, i));
    writer.close();
    writer.close();
}} catch (const std::exception &e) {{
    std::fputs(e.what(), stderr);
    return 1;
}}
""")
    program = build(tmp_path, "c++ -std=c++17", source, "-Wextra", "-Werror")
    z = zcore.create_array(tmp_path / "a", shape=(0, 2, 3), chunks=(4, 2, 3), dtype="u2")
    run(program, tmp_path / "a")
    z.refresh()
    assert z[:, 1, 2].tolist() == list(range(10))
    zcore.create_array(tmp_path / "other", shape=(0, 2, 3), chunks=(4, 2, 3), dtype="f8")
    assert "float64 is there" in run(program, tmp_path / "other", status=1)
    assert "the array is NULL" in run(program, tmp_path / "nothing", status=1)


@needs("gfortran")
def test_a_program_in_fortran(tmp_path):
    source = tmp_path / "temperatures.f90"
    source.write_text(example("fortran.md", "fortran"))
    program = build(tmp_path, "gfortran -std=f2018 -cpp", source, "-Wextra", "-Werror")
    for _ in range(2):
        assert run(program, tmp_path / "a") == ""
        assert zcore.open(tmp_path / "a")[:, 99, 199].tolist() == [1, 2, 3]
    make(tmp_path / "other")
    assert f"{tmp_path / 'other'} has 2 dimensions, 3 were asked for" in run(program, tmp_path / "other", status=1)
    zcore.create_group(tmp_path / "group")
    assert "holds a group" in run(program, tmp_path / "group", status=1)


@needs("gfortran")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_module_of_fortran_is_without_a_warning(tmp_path, level):
    subprocess.run(["gfortran", "-std=f2018", "-cpp", "-ffree-line-length-none", "-Wall", "-Wextra", "-Werror", level,
                    "-c", f"{zcore.get_include()}/zcore.F90"], check=True, cwd=tmp_path)


def test_the_codes_of_fortran_are_those_of_c():
    include = Path(zcore.get_include())
    in_c = re.findall(r"^    ZCORE_(\w+) = (\d+)", (include / "zcore.h").read_text("utf-8"), re.MULTILINE)
    text = (include / "zcore.F90").read_text("utf-8")
    assert re.findall(r"\bzcore_e_(\w+) = (\d+)", text) == [(name.lower(), number) for name, number in in_c]
    public = set(re.findall(r"\b\w+", " ".join(re.findall(r"public :: (.*)", text))))
    assert {f"zcore_e_{name.lower()}" for name, _ in in_c} < public


def test_every_procedure_of_fortran_is_on_its_page():
    text = Path(zcore.get_include(), "zcore.F90").read_text("utf-8")
    public = set(re.findall(r"\bzcore_\w+", " ".join(re.findall(r"public :: (.*)", text))))
    procedures = {name for name in public if not name.startswith("zcore_e_")} - {"zcore_array", "zcore_error",
                                                                                 "zcore_writer"}
    page = (PAGES / "fortran.md").read_text("utf-8").partition("## All procedures")[2]
    assert procedures == set(re.findall(r"^\|[^|]*?(zcore_\w+)\(", page, re.MULTILINE))
    assert set(re.findall(r"\bzcore_e_\w+", page)) - {"zcore_e_"} < public


def test_what_is_expected_is_compared(tmp_path):
    z = make(tmp_path / "a")
    for place in ("a", "group"):
        if place == "group":
            zcore.create_array(tmp_path / "group", name="b", data=z[...])
        with Handle(tmp_path / "a" if place == "a" else tmp_path / "group" / "b") as handle:
            for dtype in (b"f8", b"float64", b"d", np.dtype("f8").str.encode()):
                asked("expect", handle.number, dtype, 2)
            for dtype, ndim, code in [(b"f4", 2, 4), (b"c16", 2, 4), (np.dtype("f8").newbyteorder().str.encode(), 2, 4),
                                      (b"f8", 3, 4), (b"f8", -1, 4), (b"f8", 2**31 - 1, 4), (b"", 2, 40),
                                      (b"no type", 2, 40), (b"\xff", 2, 40), (None, 2, 40)]:
                with pytest.raises(CallError) as caught:
                    asked("expect", handle.number, dtype, ndim)
                assert caught.value.code == code, (dtype, str(caught.value))
    with pytest.raises(CallError) as caught:
        asked("expect", handle.number, b"f8", 2)
    assert caught.value.code == 41


def test_what_was_expected_stays(tmp_path):
    """Another array in the same place, whose bytes would mean something else in the caller's memory."""
    z = make(tmp_path / "a", dtype="<f8")
    with Handle(tmp_path / "a") as handle:
        asked("expect", handle.number, b"<f8", 2)
        zcore.create_array(tmp_path / "a", data=z[...].astype(">f8"), zarr_format=2, overwrite=True)
        with pytest.raises(CallError, match="replaced"):
            asked("refresh", handle.number)
        with pytest.raises(CallError, match="replaced"):
            handle.read((0, 0), (100, 200), "f8")
