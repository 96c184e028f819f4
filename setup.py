"""Build of the compiled kernel; everything that can be said without code stands in pyproject.toml.

Environment
-----------
ZCORE_LIBS : ``bundled`` (default) or ``system``
    Where c-blosc, zstd, LZ4 and zlib come from: the static archive that the `blosc` distribution installs, or the
    shared libraries of the system (with `CFLAGS` and `LDFLAGS` where they lie off the compiler's path).
ZCORE_DEFLATE : ``libdeflate`` or ``zlib``
    Which library does gzip and zlib; by default libdeflate, if the compiler finds it. The bundled build prefers its
    static archive.
ZCORE_DEBUG : ``1``
    Cython's bounds checks on, C assertions on, no optimisation.
ZCORE_SANITIZE : ``1`` or ``thread``
    The address and the undefined behaviour sanitizer, or that of threads; the process must preload the first, or the
    last (see `.ci/run` and `tests/campaign/threads.py`).
CPU_COUNT : a number
    Modules that are generated and compiled at a time, as in builds of conda; by default the CPUs of this process.

Each combination has its own folder under `build/`, and the generated C is made anew whenever another combination,
another Cython or another `setup.py` was the last to build: neither Cython nor setuptools notices a change of directives
or flags, and an in-place build copies an extension only where it is newer.
"""
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

import Cython
import Cython.Build
import numpy
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

LIBRARIES = ("blosc", "zstd", "lz4", "z")
# Licence and origin of each library that a wheel may contain; `licenses/` has the texts. c-blosc contains FastLZ and
# bitshuffle, which are under MIT.
ORIGINS = {"c-blosc": ("BSD-3-Clause AND MIT", "blosc/c-blosc"), "zstd": ("BSD-3-Clause", "facebook/zstd"),
           "lz4": ("BSD-2-Clause", "lz4/lz4"), "zlib": ("Zlib", "madler/zlib"),
           "libdeflate": ("MIT", "ebiggers/libdeflate")}
# What links libdeflate, in the order of preference.
LIBDEFLATE = {"bundled": ("-l:libdeflate.a", "-ldeflate"), "system": ("-ldeflate",)}
PROBE = """
#include <libdeflate.h>
#if LIBDEFLATE_VERSION_MAJOR == 1 && LIBDEFLATE_VERSION_MINOR < 7
#error "it has no level 0"
#endif
void *probe(void) { return libdeflate_alloc_compressor(0) ? 0 : libdeflate_alloc_decompressor(); }
"""
LINKS_LIBRARIES = "compress"     # the only module that calls them: a second copy would be a second set of symbols
# What Cython would write into every module (arguments, exceptions, classes) stands in one: it is a tenth of the kernel.
SHARED = "zcore.kernel.cython_shared"
# Cython 3.3 leaves out what no module uses: they take buffers as `zcore.kernel.memory.Bytes`.
SHARED_OPTIONS = {name: ["AutoPickle", "MemoryView"]
                  for name in Options.default_options if name == "shared_utility_features_disabled"}
# The header for programs in C, and the library of what a program without Python needs besides.
INCLUDE, START = "zcore/include", "zcore_start"
COMPILE = ["-std=c11", "-D_GNU_SOURCE", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
           "-fvisibility=hidden", "-Wno-unused-function"]
# Modules whose loops are faster for -O3, and those whose loops, or what they do for each object, are so for -O2. The
# others call, check and decide: small code is as fast there, and compiles in two thirds of the time.
LOOPS = ("copy", "gather", "points", "shuffle")
TASKS = ("cache", "checksums", "filters", "plan", "tasks")
# By module. The floating point exceptions of a cast are never read. Without them, gcc vectorizes loops that select
# numbers, as clang always does; the numbers are the same. Its -O3 makes no better loops of these, only more.
COMPILE_ONLY = {"filters": ["-fno-trapping-math", "-ftree-vectorize"]}
# Never in a file's header comment, which would win over what is said here and take the checks out of the debug build.
CHECKS = ("boundscheck", "wraparound", "initializedcheck")
UNCHECKED, CHECKED = dict.fromkeys(CHECKS, False), dict.fromkeys(CHECKS, True)
# A class that is pickled has `__reduce__`. The others have fields that Python cannot see: it refuses to pickle them,
# without the methods that Cython would generate. Functions are plain ones of C, without the attributes of Python's: the
# stubs beside the modules have their signatures. Their docstrings are no second time in a dict.
ALWAYS = {"auto_pickle": False, "binding": False, "autotestdict": False}
# A float that an integer does not hold is no part of `undefined`, and its cast is.
SANITIZERS = ["-fsanitize=address,undefined,float-cast-overflow",
              "-fno-sanitize-recover=undefined,float-cast-overflow"]
# For a small wheel. The wheel packs texts, not Cython. Python calls bound methods as fast as Cython does, and it sets
# exceptions, which code in each place would do. Calls of Python's functions need no stubs (Apple's linker makes them as
# it likes, and has a deprecated flag for -s). Nothing is unwound through the kernel: it calls no C++, and where glibc
# ends a thread it stops at the first frame without a table. Names of functions that are not called from outside, and
# the tables, are for debuggers: the debug build has them.
SMALL = ["-Os", "-g0", "-DCYTHON_COMPRESS_STRINGS=0", "-DCYTHON_UNPACK_METHODS=0", "-DCYTHON_FAST_THREAD_STATE=0"]
# Of both. Their loops still begin where the processor likes it.
UNPADDED = ["-falign-functions=1", "-falign-jumps=1", "-falign-labels=1"]
STRIPPED = []
if sys.platform != "darwin":
    SMALL += ["-fno-plt", "-fno-asynchronous-unwind-tables", "-fno-ident"]
    STRIPPED += ["-Wl,-s,-O1,--build-id=none,-z,noseparate-code"]
# Python has these flags, too, and setuptools leaves all of Python's out where CFLAGS is set (conda, Debian).
PYTHONS = ["-DNDEBUG", "-fwrapv"]
# variant: (directives, flags of the compiler, flags of the linker)
VARIANTS = {
    "release": (UNCHECKED, SMALL + PYTHONS, STRIPPED),
    "debug": (CHECKED, ["-O0", "-g", "-UNDEBUG"], []),
    # Reports name lines. What else a debugger wants would take a third more time to compile.
    "sanitize": (CHECKED, ["-O1", "-g1", "-UNDEBUG", "-fno-wrapv", "-fno-omit-frame-pointer", *SANITIZERS], SANITIZERS),
    "threads": (UNCHECKED, ["-O1", "-g1", "-UNDEBUG", "-fno-omit-frame-pointer", "-fsanitize=thread"],
                ["-fsanitize=thread"]),
}
# What the environment asks for: (ZCORE_DEBUG, ZCORE_SANITIZE).
CHOICES = {("0", "0"): "release", ("1", "0"): "debug", ("0", "1"): "sanitize", ("0", "thread"): "threads"}


def chosen_variant():
    """Return the key of `VARIANTS` that the environment asks for."""
    debug, sanitize = (os.environ.get(name) or "0" for name in ("ZCORE_DEBUG", "ZCORE_SANITIZE"))
    if debug not in ("0", "1"):
        raise SystemExit(f"ZCORE_DEBUG must be 0 or 1, not {debug!r}")
    if sanitize not in ("0", "1", "thread"):
        raise SystemExit(f"ZCORE_SANITIZE must be 0, 1 or thread, not {sanitize!r}")
    if (debug, sanitize) not in CHOICES:
        raise SystemExit("ZCORE_DEBUG and ZCORE_SANITIZE are two builds: set one of them")
    return CHOICES[debug, sanitize]


def chosen_jobs():
    """Return how many modules are generated and compiled at a time."""
    text = os.environ.get("CPU_COUNT") or ""
    if text and not (text.isascii() and text.isdecimal() and 0 < int(text) < 1000):
        raise SystemExit(f"CPU_COUNT must be a number of at least 1, not {text!r}")
    if text:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen_libs():
    """Return ``bundled`` or ``system``."""
    libs = os.environ.get("ZCORE_LIBS") or "bundled"
    if libs not in ("bundled", "system"):
        raise SystemExit(f"ZCORE_LIBS must be bundled or system, not {libs!r}")
    return libs


def chosen_deflate(libs):
    """Return the linker's flag for libdeflate, or "" for zlib."""
    name = os.environ.get("ZCORE_DEFLATE") or ""
    if name not in ("", "libdeflate", "zlib"):
        raise SystemExit(f"ZCORE_DEFLATE must be libdeflate or zlib, not {name!r}")
    found = "" if name == "zlib" else next(filter(is_linkable, LIBDEFLATE[libs]), "")
    if name == "libdeflate" and not found:
        raise SystemExit("ZCORE_DEFLATE=libdeflate: the compiler finds no libdeflate of at least 1.7: install it with "
                         "its header, and set CFLAGS and LDFLAGS where it lies off the compiler's path")
    return found


def compiler():
    """Return the command of the C compiler, a list of words."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))


def check_tools():
    """Raise SystemExit that says what helps, if there is no C compiler or if Python's header is missing."""
    command, header = compiler()[0], Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which(command) is None:
        raise SystemExit(f"the build needs a C compiler, and {command} is not there: install one (Debian: apt "
                         "install gcc python3-dev; macOS: xcode-select --install), or install zcore from a wheel, "
                         "which needs none")
    if not header.is_file():
        raise SystemExit(f"the build needs the headers of Python, and there is no {header}: install them (Debian: apt "
                         "install python3-dev), or install zcore from a wheel, which needs none")


def is_linkable(flag):
    """Return whether an extension that calls libdeflate can be compiled, and linked by `flag`."""
    flags = [shlex.split(os.environ.get(name) or "") for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE)
        command = [*compiler(), *sum(flags, []), "-shared", "-fPIC", str(source), flag, "-o", f"{folder}/probe.so"]
        try:
            return subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False


def blosc_files():
    """Return the paths of `blosc.h` and `libblosc.a` as the installed `blosc` distribution lists them.

    The folder of the archive differs between platforms (`lib`, `lib64`), and in an isolated build it lies in an
    environment of its own, so the list of files is the only thing to go by.
    """
    remedy = "install a wheel of it (pip install blosc), or set ZCORE_LIBS=system to link the system's libraries"
    try:
        distribution = importlib.metadata.distribution("blosc")
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"the build needs the Python distribution blosc: {remedy}") from None
    found = {file.name: Path(distribution.locate_file(file)).resolve() for file in distribution.files or ()
             if file.name in ("blosc.h", "libblosc.a")}
    for name in ("blosc.h", "libblosc.a"):
        if name not in found or not found[name].is_file():
            raise SystemExit(f"the installed blosc {distribution.version} brings no {name}: {remedy}")
    return found["blosc.h"], found["libblosc.a"]


def hidden_symbols():
    """Return the linker's flags that keep an archive's functions out of the extension's exported symbols."""
    return ["-Wl,-exported_symbol,_PyInit_*"] if sys.platform == "darwin" else ["-Wl,--exclude-libs,ALL"]


def kernel_sources():
    """Return the `.pyx` files of the kernel, and the one that there is not, of `SHARED`."""
    return [Path(SHARED.replace(".", "/") + ".pyx"), *sorted(Path("zcore/kernel").rglob("*.pyx"))]


def make_extension(source, variant, libs, deflate=""):
    """Return the extension of one `.pyx` file of the kernel, or of `SHARED`, whose C Cython makes of nothing."""
    _, compile_flags, link_flags = VARIANTS[variant]
    name = ".".join(source.with_suffix("").parts)
    if variant == "release" and source.stem in LOOPS + TASKS:
        compile_flags = [*compile_flags, "-O3" if source.stem in LOOPS else "-O2", *UNPADDED]
    extension = Extension(
        name, [] if name == SHARED else [str(source)], include_dirs=["zcore/kernel", INCLUDE, numpy.get_include()],
        extra_compile_args=COMPILE + COMPILE_ONLY.get(source.stem, []) + compile_flags, extra_link_args=[*link_flags])
    if source.stem == "build_info":
        extension.define_macros += [("ZCORE_VARIANT", f'"{variant}"'), ("ZCORE_LIBS", f'"{libs}"')]
    if source.stem == LINKS_LIBRARIES:
        if libs == "system":
            extension.libraries += LIBRARIES
        else:
            header, archive = blosc_files()
            extension.include_dirs.append(str(header.parent))
            extension.extra_objects.append(str(archive))
            extension.define_macros.append(("ZCORE_BUNDLED", "1"))
            extension.extra_link_args += [*hidden_symbols(), "-lpthread"]
        if deflate:
            extension.extra_link_args.append(deflate)
            extension.define_macros.append(("ZCORE_LIBDEFLATE", "1"))
    return extension


class BuildKernel(build_ext):
    """Generate the C when a build really happens: the same script also runs when only metadata are asked for."""

    def run(self):
        check_tools()
        base = Path(build_base(VARIANT, LIBS, DEFLATE))
        stamp, current = Path("build/stamp"), build_stamp(VARIANT, LIBS, DEFLATE)
        force = bool(self.force) or not stamp.exists() or stamp.read_text() != current
        stamp.unlink(missing_ok=True)
        # On Linux the workers are forked; where they are spawned a handful of modules is sooner done in this process.
        generated = Cython.Build.cythonize(
            self.extensions, build_dir=str(base / "cython"), force=force, show_all_warnings=True,
            shared_utility_qualified_name=SHARED, **SHARED_OPTIONS,
            nthreads=self.parallel if sys.platform == "linux" else 0,
            compiler_directives={**VARIANTS[VARIANT][0], **ALWAYS})
        by_name = {extension.name: extension for extension in generated}
        for extension in self.extensions:
            extension.sources = by_name[extension.name].sources
            extension.depends = by_name[extension.name].depends
            if VARIANT == "release":
                extension.extra_objects = [without_unwinding(archive, base) for archive in extension.extra_objects]
        super().run()
        self.build_start_library()
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(current)

    def build_start_library(self):
        """Make the static library that a program in C or Fortran links: it starts an interpreter."""
        objects = self.compiler.compile([f"{INCLUDE}/{START}.c"], output_dir=self.build_temp, include_dirs=[INCLUDE],
                                        extra_postargs=["-std=c11", "-O2", "-g0", "-fPIC"])
        root = Path("." if self.inplace else self.build_lib)
        self.compiler.create_static_lib(objects, START, output_dir=str(root / "zcore/lib"))


class WheelWithContents(bdist_wheel):
    """A wheel says which libraries it contains (PEP 770); `write_wheelfile` is the last step before it is packed."""

    def run(self):
        check_tools()                  # before 400 lines say which files are copied
        super().run()

    def write_wheelfile(self, folder, **keywords):
        super().write_wheelfile(folder, **keywords)
        if LIBS == "bundled" and Path(self.bdist_dir or "", "zcore/kernel").is_dir():
            sboms = Path(folder, "sboms")
            sboms.mkdir(exist_ok=True)
            bill = bill_of_materials(self.distribution.get_version(), linked_versions(self.bdist_dir))
            (sboms / "zcore.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")


def linked_versions(package):
    """Return the versions of the C libraries in the zcore of a folder, by name, as they say themselves."""
    code = "import json, zcore.kernel.codec.compress as c; print(json.dumps(c.library_versions()))"
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(package).resolve()), *filter(None, sys.path)])}
    versions = json.loads(subprocess.check_output([sys.executable, "-B", "-c", code], env=found, cwd=package))
    name, _, version = versions["deflate"].partition(" ")
    return {**{name: versions[name] for name in ORIGINS if name in versions}, **({name: version} if version else {})}


def bill_of_materials(version, libraries):
    """Return the bill of a wheel in the form of CycloneDX: itself, and the libraries in it."""
    def component(name, version, purl, **more):
        return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}

    components = [component(name, found, f"pkg:github/{ORIGINS[name][1]}@{found}",
                            licenses=[{"expression": ORIGINS[name][0]}]) for name, found in libraries.items()]
    wheel = component("zcore-array", version, f"pkg:pypi/zcore-array@{version}")
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": wheel},
            "components": components,
            "dependencies": [{"ref": wheel["purl"], "dependsOn": [part["purl"] for part in components]}]}


def page_of_index(readme, site):
    """Return README for a package index, where relative links lead nowhere: into the `site` of the docs, or to text."""
    def linked(found):
        page = re.fullmatch(r"docs/([\w/-]+)\.md(#[\w-]+)?", found[2])
        return f"[{found[1]}]({site}/{page[1]}.html{page[2] or ''})" if site and page else found[1]

    readme = re.sub(r"(!\[[^\]]*\])\(docs/([^)]+)\)\n*", rf"\1({site}/\2)\n\n" if site else "", readme)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)]+)\)", linked, readme)


def without_unwinding(archive, folder):
    """Return a copy of an archive without the tables that `SMALL` leaves out; itself, if there is no objcopy."""
    if shutil.which("objcopy") is None:
        return archive
    copy = folder / Path(archive).name
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--remove-section=.eh_frame", "--remove-section=.rela.eh_frame", archive, copy],
                   check=True)
    return str(copy)


def build_base(variant, libs, deflate):
    """Return the folder of the intermediate files of one combination."""
    return f"build/{variant}-{libs}{'-libdeflate' if deflate else ''}"


def build_stamp(variant, libs, deflate):
    """Return a text that changes with everything the generated C depends on and no timestamp shows."""
    # NumPy brings its own .pxd files, from which functions are generated into the C.
    script = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return f"{variant} {libs} {deflate} {Cython.__version__} {numpy.__version__} {script}"


if __name__ == "__main__":
    VARIANT, LIBS = chosen_variant(), chosen_libs()
    DEFLATE = chosen_deflate(LIBS)
    PROJECT = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    setup(
        long_description=page_of_index(Path("README.md").read_text("utf-8"),
                                       PROJECT.get("urls", {}).get("Documentation")),
        long_description_content_type="text/markdown",
        ext_modules=[make_extension(source, VARIANT, LIBS, DEFLATE) for source in kernel_sources()],
        cmdclass={"build_ext": BuildKernel, "bdist_wheel": WheelWithContents},
        options={"build": {"build_base": build_base(VARIANT, LIBS, DEFLATE)},
                 "build_ext": {"parallel": chosen_jobs()}},
    )
