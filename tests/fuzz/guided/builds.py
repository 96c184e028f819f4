"""Builds of the target that call the kernel: plainly for the replay of the corpus, by clang for libFuzzer.

For libFuzzer the modules under test are made anew with the sanitizers and the coverage of clang, in a copy of the
package; the other modules are copied as they are built in this tree.
"""
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import Cython

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Modules whose coverage guides libFuzzer: they look at bytes of files. What they call is made with the sanitizers only,
# as each counter costs time at every execution.
COVERED = ("codec/blosc_header", "codec/blosc_blocks", "codec/compress", "codec/program", "plan/shard_index",
           "refs/json", "refs/table")
SANITIZED = ("status", "io/files", "strided/copy", "codec/checksums", "codec/shuffle")
SANITIZERS = "address,undefined,float-cast-overflow"
# Cython adds 0 to the NULL that stands for no arguments, which is what `pointer-overflow` complains of.
FLAGS = ("-O1", "-g", "-UNDEBUG", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all",
         "-fno-sanitize=pointer-overflow")


def clang():
    """Return the command of the newest clang that brings libFuzzer, or None."""
    names = {Path(path, name).name for path in os.get_exec_path() if os.path.isdir(path) for name in os.listdir(path)
             if re.fullmatch(r"clang(-\d+)?", name)}
    for name in sorted(names, key=lambda name: int(name[6:] or 10**6), reverse=True):
        given = subprocess.run([name, "-fsanitize=fuzzer", "-x", "c", "-", "-o", os.devnull], capture_output=True,
                               input=b"int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }")
        if given.returncode == 0:
            return name
    return None


def built_plainly(folder):
    """Build the module `native` in a folder, by the compiler that built Python."""
    _cythonize(HERE / "native.pyx", folder / "native.c")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
    _run(*compiler, "-O0", "-shared", "-fPIC", *_includes(), folder / "native.c", "-o", _extension(folder / "native"))


def built_for_libfuzzer(compiler, base):
    """Build the fuzzer in a folder below `base`, unless it is there.

    Returns : (program, folders); the folders are the first of the program's PYTHONPATH.
    """
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, text=True).stdout
    sources = [file for file in (ROOT / "zcore").rglob("*") if file.suffix in (".pyx", ".pxd", ".h")]
    package = base / _digest((version, Cython.__version__, sys.version, *FLAGS), sources)
    compiled = (compiler, f"-fsanitize={SANITIZERS}", *FLAGS, "-shared", "-fPIC", *_includes())
    if not package.exists():
        shutil.rmtree(base, ignore_errors=True)
        made = base / "made"
        shutil.copytree(ROOT / "zcore", made / "zcore", ignore=shutil.ignore_patterns("__pycache__", "*.c", "*.a"))
        print(f"building {len(COVERED + SANITIZED)} modules with {compiler}, which takes minutes", flush=True)

        def build(name):
            source = made / f"{name.replace('/', '_')}.c"
            _cythonize(ROOT / "zcore/kernel" / f"{name}.pyx", source, "--shared=zcore.kernel.cython_shared")
            libraries = _libraries() if name == "codec/compress" else ()
            coverage = ("-fsanitize=fuzzer-no-link",) if name in COVERED else ()
            _run(*compiled, *coverage, source, *libraries, "-o", _extension(made / "zcore/kernel" / name))
            print(f"built zcore/kernel/{name}.pyx", flush=True)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(build, COVERED + SANITIZED))
        made.rename(package)
    for file in (ROOT / "zcore").rglob("*.py"):
        shutil.copy2(file, package / file.relative_to(ROOT))
    folder = package / _digest((), [HERE / "native.pyx", HERE / "driver.c"])
    if not folder.exists():
        made = package / "made"
        made.mkdir(exist_ok=True)
        print("building the fuzzer", flush=True)
        _cythonize(HERE / "native.pyx", made / "native.c")
        _run(*compiled, made / "native.c", "-o", _extension(made / "native"))
        libraries = [f"-L{sysconfig.get_config_var(name)}" for name in ("LIBDIR", "LIBPL")]
        libraries += [f"-lpython{sysconfig.get_config_var('LDVERSION')}",
                      f"-Wl,-rpath,{sysconfig.get_config_var('LIBDIR')}"]
        for name in ("LIBS", "SYSLIBS"):
            libraries += shlex.split(sysconfig.get_config_var(name) or "")
        _run(compiler, f"-fsanitize=fuzzer,{SANITIZERS}", *FLAGS, *_includes(), HERE / "driver.c", "-rdynamic",
             *libraries, "-o", made / "fuzzer")
        made.rename(folder)
    return folder / "fuzzer", (folder, package)


def _digest(texts, files):
    digest = hashlib.sha256(repr(texts).encode())
    for file in sorted(files):
        digest.update(str(file).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _libraries():
    """Return the flags by which setup.py compiles and links the module that calls the C libraries."""
    sys.path.insert(0, str(ROOT))
    try:
        import setup
    finally:
        del sys.path[0]
    extension = setup.make_extension(Path("zcore/kernel/codec/compress.pyx"), "sanitize", setup.chosen_libs())
    return [*(f"-I{folder}" for folder in extension.include_dirs if os.path.isabs(folder)),
            *(f"-D{name}={value}" for name, value in extension.define_macros), *extension.extra_objects,
            *(f"-l{name}" for name in extension.libraries), *setup.hidden_symbols(), "-lpthread"]


def _cythonize(source, made, *options):
    _run(sys.executable, "-m", "cython", "-3", "-X", "boundscheck=False,wraparound=False,initializedcheck=False",
         "-I", ROOT, *options, source, "-o", made, cwd=ROOT)


def _includes():
    import numpy

    folders = (sysconfig.get_path("include"), ROOT / "zcore/kernel", ROOT / "zcore/include", numpy.get_include())
    return ["-std=gnu11", "-D_GNU_SOURCE", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION", "-Wno-everything", "-w",
            *(f"-I{folder}" for folder in folders)]


def _extension(stem):
    return stem.with_name(stem.name + sysconfig.get_config_var("EXT_SUFFIX"))


def _run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
