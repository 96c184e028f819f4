"""What was built: the variant that was asked for, no foreign symbols, and plain words where the build cannot go on."""
import doctest
import importlib
import importlib.metadata
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import pytest

import zcore.kernel
from tests.each import each
from zcore.kernel.build_info import build_info
from zcore.kernel.codec.compress import library_versions

KERNEL = Path(zcore.kernel.__file__).parent
SETUP = Path(__file__).resolve().parents[2] / "setup.py"
EXTENSIONS = sorted(KERNEL.rglob(f"*{EXTENSION_SUFFIXES[0]}"))


def _module_of(path):
    """Return the dotted name of the module that a source or an extension is."""
    return ".".join((*path.relative_to(KERNEL.parents[1]).parent.parts, path.name.split(".")[0]))


@pytest.fixture
def setup_script(monkeypatch):
    """Return setup.py as a module: its functions, with nothing built and none of its switches on."""
    for name in ("ZCORE_DEBUG", "ZCORE_SANITIZE", "ZCORE_LIBS", "ZCORE_DEFLATE", "CPU_COUNT"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("zcore_setup", SETUP)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected_variant():
    """Return the variant that the environment of the tests asks for, or None when it does not say."""
    asked = (os.environ.get("ZCORE_DEBUG"), os.environ.get("ZCORE_SANITIZE"))
    return {("1", None): "debug", (None, "1"): "sanitize", (None, "thread"): "threads"}.get(asked)


def test_variant_is_the_one_asked_for():
    built = build_info()
    assert built["variant"] == (expected_variant() or built["variant"])
    assert built["libraries"] == os.environ.get("ZCORE_LIBS", built["libraries"])
    wanted = os.environ.get("ZCORE_DEFLATE")
    assert not wanted or library_versions()["deflate"].split()[0] == wanted
    assert built["assertions"] is (built["variant"] != "release")


def test_child_process_runs_the_same_build():
    code = "import zcore; from zcore.kernel.build_info import build_info; print(zcore.__file__, build_info())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == f"{zcore.__file__} {build_info()}"


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
@pytest.mark.skipif(build_info()["variant"] in ("sanitize", "threads"), reason="sanitizers export symbols of their own")
def test_extensions_export_their_init_functions_alone():
    options = ["-gU"] if sys.platform == "darwin" else ["-D", "--defined-only"]
    printed = subprocess.run(["nm", "-A", *options, *EXTENSIONS], capture_output=True, text=True, check=True).stdout
    exported = sorted((line.split(":")[0], line.split()[-1].lstrip("_")) for line in printed.splitlines())
    assert exported == sorted((str(path), f"PyInit_{path.name.split('.')[0]}") for path in EXTENSIONS)


def test_every_kernel_source_is_built(setup_script):
    expected = {_module_of(path) for path in KERNEL.rglob("*.pyx")} | {setup_script.SHARED}
    assert {_module_of(path) for path in EXTENSIONS} == expected


def test_no_extension_has_utility_code_that_nothing_needs():
    # 100 kB of memoryviews, of which arguments would be; objects of functions; methods that pickle classes.
    words = (b"View.MemoryView", b"__pyx_unpickle")
    assert [_module_of(path) for path in EXTENSIONS if any([word in path.read_bytes() for word in words])] == []
    assert not hasattr(importlib.import_module("zcore.kernel.codec.checksums").crc32c, "__dict__")


@each("name", [_module_of(path) for path in sorted(KERNEL.rglob("*.pyx"))])
def test_doctests_of_compiled_module_hold(name):
    # pytest collects doctests from .py files only.
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    source = KERNEL.parents[1] / f"{name.replace('.', '/')}.pyx"
    assert result.attempted > 0 or ">>>" not in source.read_text(encoding="utf-8")


def test_archive_is_linked_into_one_extension_only(setup_script):
    sources = [Path("zcore/kernel") / f"{stem}.pyx" for stem in ("select/grid", "codec/compress", "build_info")]
    made = {source.stem: setup_script.make_extension(source, "release", "bundled") for source in sources}
    assert [stem for stem, extension in made.items() if extension.extra_objects] == ["compress"]
    assert made["compress"].extra_objects[0].endswith("libblosc.a")
    assert all(extension.libraries == [] for extension in made.values())


def test_a_wheel_names_the_libraries_in_it(setup_script):
    found = setup_script.linked_versions(KERNEL.parents[1])
    bill = setup_script.bill_of_materials("1.2.3", found)
    parts = {part["name"]: part["version"] for part in bill["components"]}
    built = library_versions()
    assert {name: built[name] for name in ("c-blosc", "zstd", "lz4", "zlib")}.items() <= parts.items()
    assert parts.get("libdeflate") == (built["deflate"].partition(" ")[2] or None)
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/zcore-array@1.2.3"
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]
    assert {part["licenses"][0]["expression"] for part in bill["components"]} <= {
        licence for licence, _ in setup_script.ORIGINS.values()}


def test_the_texts_of_all_licences_are_there(setup_script):
    texts = {path.stem: path.read_text("utf-8") for path in (SETUP.parent / "licenses").iterdir()}
    assert set(texts) == {*setup_script.ORIGINS, "fastlz", "bitshuffle"}
    assert all("Copyright" in text for text in texts.values())
    project = tomllib.loads(SETUP.with_name("pyproject.toml").read_text("utf-8"))["project"]
    named = {name for licence, _ in setup_script.ORIGINS.values() for name in licence.split(" AND ")}
    assert set(project["license"].split(" AND ")) == named


def test_links_of_readme_on_an_index(setup_script):
    readme = "![it](docs/plots/a.svg)\n\n[a](docs/x/y.md), [b](docs/z.md#at-the-end), [c](LICENSE), [d](https://h/e)"
    assert setup_script.page_of_index(readme, None) == "a, b, c, [d](https://h/e)"
    assert setup_script.page_of_index(readme, "https://docs") == (
        "![it](https://docs/plots/a.svg)\n\n"
        "[a](https://docs/x/y.html), [b](https://docs/z.html#at-the-end), c, [d](https://h/e)")
    page = setup_script.page_of_index(SETUP.with_name("README.md").read_text("utf-8"), None)
    assert re.findall(r"\]\((?!https?:)[^)]*\)", page) == []


def test_system_libraries_replace_the_archive(setup_script):
    extension = setup_script.make_extension(Path("zcore/kernel/codec/compress.pyx"), "release", "system")
    assert extension.libraries == ["blosc", "zstd", "lz4", "z"]
    assert extension.extra_objects == []


@pytest.mark.parametrize("libs", ["bundled", "system"])
def test_libdeflate_is_linked_into_one_extension_only(setup_script, libs):
    for stem, n in (("select/grid", 0), ("codec/compress", 1), ("build_info", 0)):
        source = Path("zcore/kernel") / f"{stem}.pyx"
        extension = setup_script.make_extension(source, "release", libs, "-ldeflate")
        assert extension.extra_link_args.count("-ldeflate") == n
        assert extension.define_macros.count(("ZCORE_LIBDEFLATE", "1")) == n
        assert "-ldeflate" not in setup_script.make_extension(source, "release", libs).extra_link_args


@pytest.mark.parametrize(("libs", "linkable", "wanted", "flag"), [
    ("bundled", ["-l:libdeflate.a", "-ldeflate"], None, "-l:libdeflate.a"),
    ("bundled", ["-ldeflate"], "", "-ldeflate"),
    ("system", ["-l:libdeflate.a", "-ldeflate"], "libdeflate", "-ldeflate"),
    ("bundled", ["-l:libdeflate.a", "-ldeflate"], "zlib", ""),
    ("bundled", [], None, ""),
    ("system", [], "zlib", ""),
])
def test_libdeflate_is_taken_where_it_can_be_linked(setup_script, monkeypatch, libs, linkable, wanted, flag):
    monkeypatch.setattr(setup_script, "is_linkable", linkable.__contains__)
    if wanted is not None:
        monkeypatch.setenv("ZCORE_DEFLATE", wanted)
    assert setup_script.chosen_deflate(libs) == flag


def test_libdeflate_that_is_asked_for_and_not_there_is_explained(setup_script, monkeypatch):
    monkeypatch.setattr(setup_script, "is_linkable", lambda flag: False)
    monkeypatch.setenv("ZCORE_DEFLATE", "libdeflate")
    with pytest.raises(SystemExit, match=r"finds no libdeflate of at least 1\.7: .*CFLAGS and LDFLAGS"):
        setup_script.chosen_deflate("bundled")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(("version", "is_found"), [((1, 6), False), ((1, 7), True), ((1, 25), True), ((2, 0), True)])
def test_the_compiler_says_whether_libdeflate_is_there(setup_script, monkeypatch, tmp_path, version, is_found):
    """A header and a library in a folder that CFLAGS and LDFLAGS name."""
    (tmp_path / "libdeflate.h").write_text(
        f"#define LIBDEFLATE_VERSION_MAJOR {version[0]}\n#define LIBDEFLATE_VERSION_MINOR {version[1]}\n"
        "void *libdeflate_alloc_compressor(int);\nvoid *libdeflate_alloc_decompressor(void);\n")
    source = tmp_path / "made.c"
    source.write_text('#include "libdeflate.h"\nvoid *libdeflate_alloc_compressor(int level) { return 0; }\n'
                      "void *libdeflate_alloc_decompressor(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "libmade.so"], check=True)
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("CFLAGS", f"-I{tmp_path}")
    assert not setup_script.is_linkable("-lmade")
    monkeypatch.setenv("LDFLAGS", f"-L{tmp_path}")
    assert setup_script.is_linkable("-lmade") is is_found


def test_a_machine_without_a_compiler_is_told_what_helps(setup_script, monkeypatch):
    monkeypatch.setenv("CC", "no-such-cc -pthread")
    with pytest.raises(SystemExit, match=r"needs a C compiler, and no-such-cc is not there: install one .*, or install "
                                         r"zcore from a wheel"):
        setup_script.check_tools()


def test_a_python_without_headers_is_told_what_helps(setup_script, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", sys.executable)
    monkeypatch.setattr(setup_script.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=r"headers of Python, and there is no .*Python\.h: install them .*python3-dev"):
        setup_script.check_tools()
    (tmp_path / "Python.h").touch()
    setup_script.check_tools()


@pytest.mark.parametrize(("text", "jobs"), [("3", 3), ("", None), (None, None)])
def test_number_of_jobs_is_that_of_conda_or_of_the_cpus(setup_script, monkeypatch, text, jobs):
    monkeypatch.delenv("CPU_COUNT", raising=False)
    if text is not None:
        monkeypatch.setenv("CPU_COUNT", text)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert setup_script.chosen_jobs() == (jobs or cpus)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²"])
def test_wrong_number_of_jobs_is_refused(setup_script, monkeypatch, text):
    monkeypatch.setenv("CPU_COUNT", text)
    with pytest.raises(SystemExit, match=f"CPU_COUNT must be a number of at least 1, not {text!r}"):
        setup_script.chosen_jobs()


def test_what_runs_for_each_element_or_object_is_optimized_further(setup_script):
    """The last flag holds."""
    for name, expected in (("strided/copy", "-O3"), ("codec/shuffle", "-O3"), ("plan/plan", "-O2"), ("status", "-Os")):
        for variant, flag in (("release", expected), ("debug", "-O0"), ("sanitize", "-O1")):
            extension = setup_script.make_extension(Path(f"zcore/kernel/{name}.pyx"), variant, "bundled")
            assert [flag for flag in extension.extra_compile_args if flag.startswith("-O")][-1] == flag
    assert set(setup_script.LOOPS + setup_script.TASKS) <= {path.stem for path in KERNEL.rglob("*.pyx")}
    assert not set(setup_script.LOOPS) & set(setup_script.TASKS)


def test_debug_build_turns_the_checks_on(setup_script):
    directives, flags, _ = setup_script.VARIANTS["debug"]
    assert directives == {"boundscheck": True, "wraparound": True, "initializedcheck": True}
    assert {"-O0", "-g", "-UNDEBUG"} <= set(flags)


def test_release_build_has_no_assertions_whatever_cflags_are(setup_script):
    """Conda and Debian set CFLAGS. Setuptools leaves out the flags of Python then."""
    extension = setup_script.make_extension(Path("zcore/kernel/select/grid.pyx"), "release", "bundled")
    assert {"-DNDEBUG", "-fwrapv"} <= set(extension.extra_compile_args)


@each("path", sorted(KERNEL.rglob("*.pyx")), ids=lambda path: path.stem)
def test_source_leaves_the_checks_to_the_build(setup_script, path):
    # A header comment or a decorator wins over the directives of cythonize (seen with Cython 3.3): the debug build
    # would run unchecked and nobody would notice.
    text = path.read_text(encoding="utf-8")
    assert [name for name in setup_script.CHECKS if name in text] == []


def test_sanitizers_are_compiled_and_linked(setup_script):
    extension = setup_script.make_extension(Path("zcore/kernel/select/grid.pyx"), "sanitize", "bundled")
    for flags in (extension.extra_compile_args, extension.extra_link_args):
        assert {"-fsanitize=address,undefined,float-cast-overflow",
                "-fno-sanitize-recover=undefined,float-cast-overflow"} <= set(flags)


def test_filters_alone_are_compiled_without_floating_point_exceptions(setup_script):
    for name, expected in (("codec/filters", True), ("select/grid", False)):
        extension = setup_script.make_extension(Path(f"zcore/kernel/{name}.pyx"), "release", "bundled")
        assert ("-fno-trapping-math" in extension.extra_compile_args) == expected


def test_each_combination_has_a_folder_and_a_stamp_of_its_own(setup_script):
    combinations = list(itertools.product(setup_script.VARIANTS, ("bundled", "system"), ("", "-ldeflate")))
    assert len({setup_script.build_base(*each) for each in combinations}) == len(combinations) == 16
    assert len({setup_script.build_stamp(*each) for each in combinations}) == 16


@pytest.mark.parametrize(("environment", "variant", "libs"), [
    ({}, "release", "bundled"),
    ({"ZCORE_DEBUG": "1"}, "debug", "bundled"),
    ({"ZCORE_DEBUG": "0", "ZCORE_SANITIZE": "1"}, "sanitize", "bundled"),
    ({"ZCORE_SANITIZE": "thread"}, "threads", "bundled"),
    ({"ZCORE_DEBUG": "", "ZCORE_LIBS": "system"}, "release", "system"),
    ({"ZCORE_LIBS": ""}, "release", "bundled"),
])
def test_environment_chooses_the_build(setup_script, monkeypatch, environment, variant, libs):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (setup_script.chosen_variant(), setup_script.chosen_libs()) == (variant, libs)


@pytest.mark.parametrize(("environment", "words"), [
    ({"ZCORE_DEBUG": "yes"}, "ZCORE_DEBUG must be 0 or 1, not 'yes'"),
    ({"ZCORE_SANITIZE": "2"}, "ZCORE_SANITIZE must be 0, 1 or thread, not '2'"),
    ({"ZCORE_DEBUG": "1", "ZCORE_SANITIZE": "1"}, "two builds"),
    ({"ZCORE_DEBUG": "1", "ZCORE_SANITIZE": "thread"}, "two builds"),
    ({"ZCORE_LIBS": "shared"}, "ZCORE_LIBS must be bundled or system, not 'shared'"),
    ({"ZCORE_DEFLATE": "isal"}, "ZCORE_DEFLATE must be libdeflate or zlib, not 'isal'"),
])
def test_wrong_choice_is_refused(setup_script, monkeypatch, environment, words):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=words):
        (setup_script.chosen_variant(), setup_script.chosen_libs(), setup_script.chosen_deflate("bundled"))


def test_header_and_archive_are_found_by_the_list_of_files(setup_script):
    header, archive = setup_script.blosc_files()
    assert "blosc_decompress_ctx" in header.read_text()
    assert archive.read_bytes()[:8] == b"!<arch>\n"


def test_absent_blosc_is_explained(setup_script, monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)
    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(SystemExit, match="needs the Python distribution blosc: .*install blosc.*ZCORE_LIBS=system"):
        setup_script.blosc_files()


@pytest.mark.parametrize("files", [None, [], ["blosc.h"]])
def test_blosc_without_its_archive_is_explained(setup_script, monkeypatch, tmp_path, files):
    (tmp_path / "blosc.h").touch()
    listed = files and [SimpleNamespace(name=name) for name in files]
    fake = SimpleNamespace(version="1.0", files=listed, locate_file=lambda file: tmp_path / file.name)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: fake)
    missing = "libblosc.a" if files else "blosc.h"
    with pytest.raises(SystemExit, match=rf"blosc 1\.0 brings no {missing}: .*ZCORE_LIBS=system"):
        setup_script.blosc_files()


def test_listed_file_that_is_gone_is_explained(setup_script, monkeypatch, tmp_path):
    listed = [SimpleNamespace(name=name) for name in ("blosc.h", "libblosc.a")]
    fake = SimpleNamespace(version="1.0", files=listed, locate_file=lambda file: tmp_path / file.name)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: fake)
    with pytest.raises(SystemExit, match="brings no blosc.h"):
        setup_script.blosc_files()
