"""zcore on another machine: `python .ci/machines.py aarch64`, for aarch64, s390x, armhf, ppc64le and i386.

Makes a small root file system of Debian's packages, which nothing is installed into, cross-compiles the kernel, and
runs the foreign Python by qemu; i386 runs as it is. Both ways of the exchange of arrays (`tests/interop/exchange.py`)
are tried, and with `--tests` the tests that an emulated machine has time for, or those that are named.

The interpreter that runs this needs what builds zcore: Cython, NumPy and setuptools. Root is not needed. Exits with 2,
and one sentence, where this machine lacks something else.
"""
import argparse
import contextlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
# The first one of Debian with NumPy 2, and the next one, where a mirror lacks the first one's updates for this machine.
SUITES = ("trixie", "forky")
PACKAGES = ("python3", "libpython3-dev", "python3-numpy", "python3-hypothesis", "python3-yaml",
            "python3-blosc", "python3-numcodecs", "libblosc1", "libblosc-dev", "libzstd-dev", "liblz4-dev",
            "zlib1g-dev")
# name: (Debian's architecture, its triplet, the emulator; none where this processor runs it)
MACHINES = {
    "aarch64": ("arm64", "aarch64-linux-gnu", "qemu-aarch64-static"),
    "s390x": ("s390x", "s390x-linux-gnu", "qemu-s390x-static"),
    "armhf": ("armhf", "arm-linux-gnueabihf", "qemu-arm-static"),
    "ppc64le": ("ppc64el", "powerpc64le-linux-gnu", "qemu-ppc64le-static"),
    "i386": ("i386", "i386-linux-gnu", None),
}
COMPILERS = {"i386": "i686-linux-gnu-gcc"}      # where its name is not that of the libraries' folder
TESTS = ("tests/unit/kernel", "tests/unit/codecs", "tests/unit/formats", "tests/unit/indexing", "tests/unit/asdf",
         "tests/unit/test_blosc.py")
# Tests start interpreters by this name, and the kernel of this machine does not run a foreign one.
SITE = """
import os, sys
sys.executable = os.environ["ZCORE_MACHINE_PYTHON"]
"""
# qemu leaves the nanoseconds out of what `fstat` says on s390x, so a file would have another identity than its name.
FSTAT = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int fstat(int fd, struct stat *s) { return syscall(SYS_newfstatat, fd, "", s, AT_EMPTY_PATH); }
int fstat64(int fd, struct stat64 *s) { return syscall(SYS_newfstatat, fd, "", s, AT_EMPTY_PATH); }
"""
PLUGIN = """
from hypothesis import settings
settings.register_profile("emulated", max_examples=5, deadline=None, database=None)
settings.load_profile("emulated")
"""


class MissingError(Exception):
    """This machine lacks something; the message is a sentence."""


def stage(text):
    print(f"=== {text} ({time.monotonic() - START:.0f} s so far)", flush=True)


def run(*command, **keywords):
    return subprocess.run([*map(str, command)], check=True, **keywords)


def check(machine):
    """Return the command of the C compiler, and that of the emulator or None."""
    _, triplet, emulator = MACHINES[machine]
    compiler = COMPILERS.get(machine, f"{triplet}-gcc")
    if machine == "i386" and platform.machine() not in ("x86_64", "i686"):
        emulator = "qemu-i386-static"
    packages = {"apt-get": "apt", "dpkg-deb": "dpkg", compiler: compiler.rpartition("-")[2] + "-" +
                compiler.rpartition("-")[0], emulator: "qemu-user-static"}
    for command, package in packages.items():
        if command and shutil.which(command) is None:
            raise MissingError(f"{machine} needs {command}, which is not here (Debian: apt install {package})")
    return compiler, emulator


def fetch(machine, folder):
    """Unpack the packages of another architecture, and all that they need, below a folder; return their suite."""
    names = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)"], text=True,
                           capture_output=True).stdout.split("\n")
    mirror = next((line.split()[0] for line in names if "debian" in line and "security" not in line), None)
    keys = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if mirror is None or not keys.exists():
        raise MissingError(f"{machine} needs a mirror of Debian among apt's sources, and {keys}")
    for suite in SUITES:
        with contextlib.suppress(subprocess.CalledProcessError):
            archives = download(machine, folder / f"apt-{suite}", f"[signed-by={keys}] {mirror} {suite}")
            break
    else:
        raise MissingError(f"{machine} needs packages of Debian that apt-get cannot fetch here: of {SUITES}")
    root = folder / "root"
    (root / "usr/lib").mkdir(parents=True, exist_ok=True)
    for name in ("lib", "lib64"):
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for package in sorted(archives.glob("*.deb")):
        run("dpkg-deb", "-x", package, root)
    (folder / "fetched").touch()
    return suite


def download(machine, state, source):
    """Download the packages from a suite, and return their folder; `state` is where apt keeps what it knows."""
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb {source} main\n")
    options = {"APT::Architecture": MACHINES[machine][0], "APT::Architectures": MACHINES[machine][0],
               "APT::Sandbox::User": "root", "Acquire::Languages": "none", "Dir::State": state,
               "Dir::State::status": state / "status", "Dir::Cache": state / "cache", "Dir::Etc": state / "etc",
               "Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-"}
    apt = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    run(*apt, "update")
    run(*apt, "install", "-y", "--download-only", "--no-install-recommends", *PACKAGES)
    return state / "cache/archives"


def build(machine, compiler, root, sources):
    """Copy the package to a folder, and compile the kernel there."""
    import Cython.Build
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=HERE, text=True,
                           capture_output=True, check=True).stdout.splitlines()
    for name in files:
        if (HERE / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HERE / name, sources / name)
    spec = importlib.util.spec_from_file_location("zcore_setup", HERE / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    # A release of these sources that was built for this machine has the same C.
    chosen, stamp = ("release", "bundled", ""), HERE / "build/stamp"
    if stamp.exists() and stamp.read_text() == setup.build_stamp(*chosen):
        shutil.copytree(HERE / setup.build_base(*chosen) / "cython", sources / "build/cython", dirs_exist_ok=True)
    here = Path.cwd()
    os.chdir(sources)
    extensions = [setup.make_extension(source, "release", "system") for source in setup.kernel_sources()]
    extensions = Cython.Build.cythonize(
        extensions, build_dir="build/cython", shared_utility_qualified_name=setup.SHARED, quiet=True,
        nthreads=os.cpu_count(), compiler_directives={**setup.VARIANTS["release"][0], **setup.ALWAYS})
    triplet = MACHINES[machine][1]
    (python,) = (root / "usr/include").glob("python3.*")
    numpy = root / "usr/lib/python3/dist-packages/numpy/_core/include"
    flags = [f"--sysroot={root}", "-shared", "-fPIC", f"-I{numpy}", f"-I{python}",
             f"-L{root}/usr/lib/{triplet}", f"-Wl,-rpath-link,{root}/usr/lib/{triplet}"]
    if machine == "i386":
        flags += ["-msse2", "-mfpmath=sse"]

    def compile(extension):
        target = Path(*extension.name.split(".")).with_suffix(".so")
        source = Path(extension.sources[0])
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            run(compiler, *flags, *(f"-I{name}" for name in extension.include_dirs[:2]),
                *(f"-D{name}={value}" for name, value in extension.define_macros), *extension.extra_compile_args,
                source, "-o", target, *extension.extra_link_args, *(f"-l{name}" for name in extension.libraries))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile, extensions))
    os.chdir(here)
    return len(extensions)


def make_python(machine, compiler, emulator, root, folder, pages):
    """Write a command that runs the foreign Python with what it needs, and return its path."""
    libraries = root / "usr/lib" / MACHINES[machine][1]
    (interpreter,) = (path for path in (root / "usr/bin").glob("python3.*") if path.suffix[1:].isdecimal())
    path = os.pathsep.join(map(str, (libraries, libraries / "blas", libraries / "lapack")))
    if emulator:
        command = [emulator, *(("-p", pages) if pages else ()), "-L", root, "-E", f"LD_LIBRARY_PATH={path}"]
        if machine == "s390x":
            (folder / "fstat.c").write_text(FSTAT)
            run(compiler, f"--sysroot={root}", "-shared", "-fPIC", folder / "fstat.c", "-o", folder / "fstat.so")
            command += ["-E", f"LD_PRELOAD={folder}/fstat.so"]
        command.append(interpreter)
    else:
        (loader,) = (root / "usr/lib").glob("ld-linux*")
        command = [loader, "--library-path", path, "--argv0", interpreter, interpreter]
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site/sitecustomize.py").write_text(SITE)
    (folder / "site/few_examples.py").write_text(PLUGIN)
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexport ZCORE_MACHINE_PYTHON={shlex.quote(str(python))}\n"
                      f"exec {shlex.join(map(str, command))} \"$@\"\n")
    python.chmod(0o755)
    return python


def exchange(python, environment, folder):
    """Write arrays on each of the two machines, and read them on the other one."""
    # What was built for this machine lies beside these sources; the other one's are a copy.
    here = sys.executable, HERE, {**os.environ, "PYTHONPATH": str(HERE)}
    there = python, folder / "sources", environment

    def one_way(writer, reader, name):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
        for (command, where, env), verb in ((writer, "write"), (reader, "read")):
            run(command, "-m", "tests.interop.exchange", verb, folder / name, cwd=where, env=env)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one_way, (here, there), (there, here), ("there", "here")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("--work", type=Path, help="folder of what is made; by default build/machines")
    parser.add_argument("--tests", nargs="*", help="run these tests, too; without a name, those in TESTS")
    parser.add_argument("--pages", type=int, help="bytes of a page that qemu tells, such as 65536")
    given = parser.parse_args()
    folder = (given.work or HERE / "build/machines").resolve() / given.machine
    try:
        compiler, emulator = check(given.machine)
        if not (folder / "fetched").exists():
            stage("packages of Debian")
            print("from", fetch(given.machine, folder))
    except MissingError as error:
        print(error)
        return 2
    stage("build")
    root, sources = folder / "root", folder / "sources"
    print(build(given.machine, compiler, root, sources), "modules")
    python = make_python(given.machine, compiler, emulator, root, folder, given.pages)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "site", sources)))}
    stage("import")
    run(python, "-c", "import mmap, sys, zcore; print(sys.byteorder, sys.maxsize, mmap.PAGESIZE); zcore.show_config()",
        cwd=sources, env=environment)
    stage("exchange")
    exchange(python, environment, folder)
    if given.tests is not None:
        stage("tests")
        # Debian's is older than the tests need. It is of Python alone, so any machine's will do.
        run(sys.executable, "-m", "pip", "install", "-q", "--target", folder / "site", "--upgrade", "pytest>=9")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "few_examples",
                   "-o", "addopts=--import-mode=importlib", "-m", "not slow", "--continue-on-collection-errors",
                   "-W", "ignore:It looks like",        # of hypothesis, which takes its own numbers for forgotten ones
                   *(given.tests or TESTS)]
        return subprocess.run(command, cwd=sources, env=environment).returncode
    stage("done")
    return 0


START = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
