"""Programs and modules that are built with `zcore.h`: they run, and some of them without the GIL."""
import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.unit.embed.header import Handle
from zcore import deflate
from zcore.codecs.bytes_bytes import compressors
from zcore.kernel.build_info import build_info

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "embed"
SOURCE = Path(__file__).parent
# Where zcore is not installed for other interpreters, as in a checkout, they find it by this.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(zcore.__file__).parents[1]),
                                                            os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
               "ZCORE_PYTHON": sys.executable, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               # Ranks and threads that wait leave the CPU to the others.
               "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_WAIT_POLICY": "passive"}


def needs(*names):
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@functools.cache
def flags(*options):
    # As a shell cuts what a command has printed.
    return subprocess.run([sys.executable, "-m", "zcore.embed", *options], check=True, text=True, capture_output=True,
                          env=ENVIRONMENT).stdout.split()


def build(folder, compiler, source, *options):
    """Compile and link one program; return its path."""
    program = folder / Path(source).stem
    # Fortran wants modules before those that use them.
    before = flags("--fortran") if Path(source).suffix == ".f90" else []
    subprocess.run([*shlex.split(compiler), "-Wall", *options, *flags("--cflags"), *before, str(source),
                    *flags("--libs"), "-lm", "-o", str(program)], check=True, cwd=folder)
    return program


def run(*command, status=0, **environment):
    """Run a program; return what it has printed."""
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120,
                           env={**ENVIRONMENT, **environment})
    assert ended.returncode == status, ended.stderr
    return ended.stdout if status == 0 else ended.stderr


@needs("cc")
@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++11"), ("c++", "c++20")])
def test_the_header_stands_alone(language, standard):
    if language == "c++" and shutil.which("c++") is None:
        pytest.skip("needs c++")
    subprocess.run(["c++" if language == "c++" else "cc", f"-std={standard}", "-x", language, "-fsyntax-only", "-Wall",
                    "-Wextra", "-Wpedantic", "-Werror", f"{zcore.get_include()}/zcore.h"], check=True)


@pytest.fixture
def while_the_gil_is_held(tmp_path):
    """A function of (array of 8-byte elements, their number, whether they are written): 0 if no call needed the GIL."""
    library = tmp_path / "gil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", f"-I{zcore.get_include()}", str(SOURCE / "gil.c"),
                    "-lpthread", "-o", str(library)], check=True)
    # A PyDLL calls with the GIL held.
    call = ctypes.PyDLL(str(library)).while_the_gil_is_held
    call.argtypes = [ctypes.py_object, ctypes.c_int64, ctypes.c_int, ctypes.c_double]
    return lambda array, n, writes: call(array, n, writes, 20.0)


@needs("cc")
@pytest.mark.parametrize("keywords", [{}, {"shards": (1000,)}, {"zarr_format": 2},
                                      {"zarr_format": 2, "dtype": [("x", "f8")]}],
                         ids=["v3", "shards", "v2", "structures"])
def test_reads_and_writes_of_files_need_no_gil(tmp_path, while_the_gil_is_held, keywords):
    z = zcore.create_array(tmp_path / "a", shape=(3000,), chunks=(100,), **{"dtype": "f8", **keywords})
    z[...] = np.arange(3000.0).astype(z.dtype)
    assert while_the_gil_is_held(z, 3000, True) == 0
    assert np.array_equal(z[...].view("f8"), np.arange(3000) + 20)


@needs("cc")
def test_reads_need_no_gil_where_only_the_encoder_is_python(tmp_path, while_the_gil_is_held, monkeypatch):
    """As gzip level 1 is written by isal, and read by libdeflate. A handle for writing reads like one for reading."""
    if deflate.writer() is None:
        pytest.skip("isal is not installed")
    monkeypatch.setattr(compressors, "LIBDEFLATE", "1.14")
    monkeypatch.setattr(deflate, "MIN_NBYTES", 0)
    z = zcore.create_array(tmp_path / "a", shape=(3000,), chunks=(100,), dtype="f8", zarr_format=2,
                           compressors={"id": "gzip", "level": 1})
    z[...] = np.arange(3000.0)
    z = zcore.open(tmp_path / "a", mode="r+")
    chain = z._binding.view.chain
    assert chain.program.decodes_natively and not chain.program.is_native
    assert while_the_gil_is_held(z, 3000, False) == 0
    with Handle(tmp_path / "a") as handle:
        handle.write((150,), np.full(1000, 7.0))
        assert handle.read((149,), (1002,), "f8").tolist() == [149, *[7] * 1000, 1150]
    assert z[149:152].tolist() == [149, 7, 7]


@needs("cc")
def test_reads_of_asdf_files_need_no_gil(tmp_path, while_the_gil_is_held):
    dtypes = {"a": "<f8", "b": ">i8", "c": [("x", "<f4"), ("y", "?"), ("z", "S3")]}
    zcore.asdf.write(tmp_path / "a.asdf", {name: np.arange(3000).astype(dtype) for name, dtype in dtypes.items()})
    time.sleep(2.1)      # of a younger file, Python compares the document
    for name in dtypes:
        assert while_the_gil_is_held(zcore.open(tmp_path / "a.asdf", path=name), 3000, False) == 0


@needs("cc")
def test_heat_in_c_goes_on_where_it_was(tmp_path):
    program = build(tmp_path, "cc", EXAMPLES / "heat.c", "-O2", "-fopenmp", "-Wextra")
    whole = run(program, tmp_path / "whole", 60, 10)
    run(program, tmp_path / "parts", 25, 10)
    assert run(program, tmp_path / "parts", 60, 10) == whole
    a, b = zcore.open(tmp_path / "whole"), zcore.open(tmp_path / "parts")
    assert a[...].tobytes() == b[...].tobytes()
    assert dict(a.attrs) == dict(b.attrs) == {"step": 60}


@needs("mpicc", "mpirun")
@pytest.mark.parametrize("n_ranks", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_heat_with_mpi_is_the_same(tmp_path, n_ranks):
    alone = build(tmp_path, "cc", EXAMPLES / "heat.c", "-O2")
    run(alone, tmp_path / "alone", 40, 10)
    together = build(tmp_path, "mpicc", EXAMPLES / "heat.c", "-O2", "-DUSE_MPI")
    # Rows of three ranks are no multiples of a chunk.
    run("mpirun", "--oversubscribe", "-n", n_ranks, together, tmp_path / "together", 15, 5)
    run("mpirun", "--oversubscribe", "-n", n_ranks, together, tmp_path / "together", 40, 10)
    assert zcore.open(tmp_path / "alone")[...].tobytes() == zcore.open(tmp_path / "together")[...].tobytes()


@needs("gfortran")
def test_spectral_in_fortran(tmp_path):
    program = build(tmp_path, "gfortran -std=f2018 -cpp", EXAMPLES / "spectral.f90")
    assert run(program, tmp_path / "a", 3) == "3 steps more\n"
    run(program, tmp_path / "a", 2)
    _is_spectral(zcore.open(tmp_path / "a"))


@needs("mpif90", "mpirun", "gfortran")
def test_spectral_with_mpi(tmp_path):
    program = build(tmp_path, "mpif90 -cpp -DUSE_MPI", EXAMPLES / "spectral.f90")
    run("mpirun", "--oversubscribe", "-n", 3, program, tmp_path / "a", 5)
    _is_spectral(zcore.open(tmp_path / "a"))


def _is_spectral(z):
    t, v, k, j, i = np.meshgrid(*[np.arange(1, n + 1) for n in (5, 3, 4, 6, 8)], indexing="ij")
    assert np.array_equal(z[...], i + 10*j + 100*k + 1000*v + 1j * t)
    assert dict(z.attrs) == {"code": "spectral"}


@needs("gfortran")
def test_every_type_and_rank_in_fortran(tmp_path):
    program = build(tmp_path, "gfortran -std=f2018 -fcheck=all", SOURCE / "all_types.f90")
    assert run(program, tmp_path / "a") == "all the same\n"


@needs("gfortran")
def test_errors_in_fortran(tmp_path):
    program = build(tmp_path, "gfortran -std=f2018", SOURCE / "errors.f90")
    lines = run(program, tmp_path / "a").splitlines()
    assert lines[0].startswith("2 ") and "does not exist" in lines[0]
    assert lines[1] == "9 start (1, 1), step (1, 1), count (3, 4) do not lie in an array of shape (6, 4); " \
                       "zcore_refresh takes over another shape"
    assert lines[2] == f"4 {tmp_path / 'a'} has 2 dimensions, 1 were asked for"
    assert lines[3] == f"4 {tmp_path / 'a'} holds another array: dtype float32 was asked for, float64 is there"
    assert lines[4] == "41 the array is not open"
    assert "zcore: " in run(program, tmp_path / "a", "stop", status=1)


@needs("cc")
def test_a_camera_in_c(tmp_path):
    program = build(tmp_path, "cc", EXAMPLES / "camera.c", "-O2", "-Wextra")
    for _ in range(2):
        assert run(program, tmp_path / "a", 53) == "all is stored\n"
    i, j = np.ogrid[:64, :64]
    assert np.array_equal(zcore.open(tmp_path / "a")[...], np.tile(np.arange(53), 2)[:, None, None] + i * j)


@needs("gfortran")
def test_waves_in_fortran(tmp_path):
    program = build(tmp_path, "gfortran -std=f2018 -cpp", EXAMPLES / "waves.f90")
    assert run(program, tmp_path / "a", 37) == "37 steps\n"
    before = now = np.zeros((30, 40))
    now[14, 19] = 1
    for found in zcore.open(tmp_path / "a")[...]:
        assert np.allclose(found, now, rtol=0, atol=1e-12)
        around = sum([np.roll(now, shift, axis) for shift in (1, -1) for axis in (0, 1)])
        before, now = now, 2 * now - before + 0.25 * (around - 4 * now)


@needs("gfortran")
def test_a_writer_in_fortran(tmp_path):
    program = build(tmp_path, "gfortran -std=f2018 -fcheck=all", SOURCE / "writer.f90")
    assert run(program, tmp_path / "a").splitlines() == [
        "4 the data are f4, the array has elements of type float64", "4 the data have rank 1, the array has 3",
        "40 dimension 2 of the data has length 2, that of the array 3",
        "9 start (0, 0, 0), count (5, 3, 4) do not lie in an array of shape (0, 3, 4)",
        "40 start has 2 numbers, expected 3", "41 the writer is not open", "40 the writer is NULL",
        "40 axis is 4, expected 1 to 3",
        "40 ValueError: queue is -1, expected a number of bytes, 0 or more and less than 2**62",
        "41 the array is not open"]


@needs("c++")
def test_strides_in_cpp(tmp_path):
    program = build(tmp_path, "c++ -std=c++17", EXAMPLES / "strided.cpp", "-Wextra")
    assert run(program, tmp_path / "a").splitlines()[0] == "25 -1 19 -1 13 -1 "
    assert np.array_equal(zcore.open(tmp_path / "a")[...], np.arange(48).reshape(8, 6).T)


@needs("cc")
def test_an_interpreter_that_cannot_be_started(tmp_path):
    program = build(tmp_path, "cc", EXAMPLES / "heat.c", "-Wno-unknown-pragmas")
    for python in ("/nowhere/python", "/bin/false"):
        said = run(program, tmp_path / "a", status=1, ZCORE_PYTHON=python)
        assert f"cannot start: cannot run an interpreter; set ZCORE_PYTHON to the path of another: {python}\n" in said
    python = str(_lonely_python(tmp_path))
    said = run(program, tmp_path / "a", status=1, PYTHONPATH=str(tmp_path), ZCORE_PYTHON=python)
    assert "cannot start: zcore cannot be imported; set ZCORE_PYTHON to the path of a python that has it: " in said
    assert said.endswith(f", in {python}\n")


def _lonely_python(folder):
    """An interpreter without zcore."""
    script = folder / "python"
    script.write_text(f"#!/bin/sh\nexec {shlex.quote(os.path.realpath(sys.executable))} -S -I \"$@\"\n")
    script.chmod(0o755)
    return script


@needs("cc", "valgrind")
@pytest.mark.slow
def test_a_program_leaves_no_memory_behind(tmp_path):
    program = build(tmp_path, "cc", SOURCE / "leaks.c", "-O1")
    said = subprocess.run(
        # The interpreter uses random bytes that valgrind takes for undefined.
        ["valgrind", "--error-exitcode=9", "--errors-for-leak-kinds=definite", "--leak-check=full",
         "--show-leak-kinds=definite", "--undef-value-errors=no", f"--suppressions={SOURCE / 'valgrind.supp'}",
         str(program), str(tmp_path / "a"), "50"],
        capture_output=True, text=True, env={**ENVIRONMENT, "PYTHONMALLOC": "malloc"}, timeout=600)
    assert said.returncode == 0, said.stderr[-3000:]


@needs("cc")
@pytest.mark.skipif(build_info()["variant"] == "sanitize", reason="the sanitizer keeps freed memory for a while")
@pytest.mark.parametrize("n", [3000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_handles_that_are_opened_and_closed_leave_nothing_behind(tmp_path, n):
    program = build(tmp_path, "cc", SOURCE / "leaks.c", "-O1")
    assert run(program, tmp_path / "a", n) == "nothing more\n"


@needs("cc")
def test_a_fork_in_the_middle_of_a_call(tmp_path):
    """Both processes come back from the call, and close the handle: no call is counted twice, none is forgotten."""
    program = build(tmp_path, "cc", SOURCE / "forks.c", "-O1", "-D_GNU_SOURCE", "-ldl", "-lpthread")
    for how in ("python", "c", "close", "threads", "writer"):
        # Of the first one, no call needs Python.
        compressor = {"id": "zlib" if how == "threads" else "bz2", "level": 1}
        zcore.create_array(tmp_path / how, data=np.arange(1000.0), chunks=(100,), zarr_format=2, compressors=compressor)
        run(program, tmp_path / how, how)
    assert zcore.open(tmp_path / "writer").shape == (2012,)     # with 5 of the child


@needs("cc")
def test_heat_in_cython(tmp_path):
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    shutil.copy(EXAMPLES / "heat.pyx", tmp_path / "heat_in_cython.pyx")
    source = str(tmp_path / "heat_in_cython.pyx")
    extension = Extension("heat_in_cython", [source], include_dirs=[zcore.get_include()],
                          extra_compile_args=["-O0", "-g0"])
    (extension,) = cythonize([extension], include_path=[str(Path(zcore.__file__).parents[1])], quiet=True,
                             build_dir=str(tmp_path))
    command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(tmp_path)
    command.ensure_finalized()
    command.run()
    z = zcore.create_array(tmp_path / "a", shape=(64, 64), chunks=(16, 64), dtype="f8")
    z[...] = np.random.default_rng(3).random((64, 64))
    expected = z[...]
    run(sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import heat_in_cython, zcore;"
        " heat_in_cython.solve(zcore.open(sys.argv[2], mode='r+'), 10, 3)", tmp_path, tmp_path / "a")
    for _ in range(10):
        around = [np.roll(expected, shift, axis) for shift, axis in [(1, 0), (-1, 0), (1, 1), (-1, 1)]]
        expected = expected + 0.1 * (around[0] + around[1] + around[2] + around[3] - 4 * expected)
    assert np.allclose(z[...], expected, rtol=1e-14)


def test_numba(tmp_path):
    pytest.importorskip("numba")
    zcore.create_array(tmp_path / "a", shape=(5000,), chunks=(300,), dtype="f8")[...] = np.arange(5000)
    found = run(sys.executable, EXAMPLES / "in_numba.py", tmp_path / "a").split()
    assert [float(mean) for mean in found] == [i * 4900 // 9 + 49.5 for i in range(10)]


@needs("cc", "pkg-config")
def test_pkg_config(tmp_path):
    (folder,) = flags("--pkgconfigdir")
    said = subprocess.run(["pkg-config", "--cflags", "--libs", "zcore"], check=True, text=True, capture_output=True,
                          env={**os.environ, "PKG_CONFIG_PATH": folder}).stdout
    program = tmp_path / "heat"
    subprocess.run(["cc", str(EXAMPLES / "heat.c"), *said.split(), "-lm", "-o", str(program)], check=True)
    assert "2 steps" in run(program, tmp_path / "a", 2, 1)


@needs("cc", "cmake")
def test_cmake(tmp_path):
    shutil.copy(EXAMPLES / "heat.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(heat C)\nfind_package(zcore CONFIG REQUIRED)\n"
        "add_executable(heat heat.c)\ntarget_link_libraries(heat PRIVATE zcore::zcore m)\n")
    (folder,) = flags("--cmakedir")
    for command in (["cmake", "-S", ".", "-B", "b", f"-Dzcore_DIR={folder}"], ["cmake", "--build", "b"]):
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    assert "2 steps" in run(tmp_path / "b" / "heat", tmp_path / "a", 2, 1)
