"""What is wrong with an installation is told in one sentence, which says what to do."""
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import zcore
from zcore.errors import Needing, UnsupportedError
from zcore.model.dtypes import _OLDEST_NUMPY

ROOT = Path(__file__).resolve().parents[2]


def python(code, *paths, cwd="/", **environment):
    """Run code in a new interpreter with folders before all others; return the finished process."""
    first = os.pathsep.join([*map(str, paths), str(Path(zcore.__file__).parents[1])])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": first, **environment})


def last_line(done):
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def module(tmp_path):
    """Return a function that puts a module of some text before the installed one, and its folder."""
    def make(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
        return tmp_path

    return make


@pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="the sources are not there")
def test_a_build_without_a_compiler_ends_before_it_generates_anything(tmp_path):
    done = subprocess.run([sys.executable, "setup.py", "build_ext", "--build-lib", tmp_path], cwd=ROOT, text=True,
                          capture_output=True, env={**os.environ, "CC": "no-such-cc", "ZCORE_DEFLATE": "zlib"})
    assert last_line(done).startswith("the build needs a C compiler, and no-such-cc is not there: install one")
    assert "Cythonizing" not in done.stdout and not list(tmp_path.iterdir())


def test_numpy_that_is_too_old(module):
    folder = module("numpy", "__version__ = '1.26.4'\n")
    assert last_line(python("import zcore.model.dtypes", folder)) == (
        f"ImportError: zcore needs NumPy 2.0 or newer, and 1.26.4 is installed in {folder}/numpy: python -m pip "
        "install --upgrade numpy")
    (needed,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert needed == f"numpy>={_OLDEST_NUMPY}.0"


def test_sources_that_are_not_built_before_an_installed_copy(module):
    """Two copies: the folder that Python is started in hides the installed one."""
    folder = module("zcore", (Path(zcore.__file__).parent / "__init__.py").read_text("utf-8"))
    (folder / "zcore" / "kernel").mkdir()
    (folder / "zcore" / "kernel" / "__init__.py").touch()
    assert last_line(python("import zcore", folder)) == (
        f"ImportError: zcore is imported from its sources in {folder}/zcore, which are not built: start Python in "
        "another folder, or build in place by `python -m pip install -e .`")


def test_half_of_each_of_two_copies(module, tmp_path):
    """The finder of an editable installation is asked for modules that the first copy lacks."""
    folder = module("zcore", (Path(zcore.__file__).parent / "__init__.py").read_text("utf-8"))
    other = tmp_path / "other"
    other.mkdir()
    for name in ("__init__", "build_info"):
        (other / f"{name}.py").touch()
    code = f"""
import importlib.util, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "zcore.kernel":
            return importlib.util.spec_from_file_location(name, {str(other / "__init__.py")!r})
sys.meta_path.insert(0, Finder)
import zcore
"""
    assert last_line(python(code, folder)) == (
        f"ImportError: zcore is imported from {folder}/zcore, its compiled part from another copy, {other}: uninstall "
        "one of them, or start Python in another folder")


def test_an_extra_that_is_broken_and_two_copies(module, tmp_path):
    folder = module("h5py", "raise OSError('libhdf5.so.310: cannot open shared object file')\n")
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    code = f"import zcore; zcore.copy({str(tmp_path / 'a.h5')!r}, {str(tmp_path / 'a.zarr')!r})"
    assert last_line(python(code, folder)).endswith(
        "HDF5 files need h5py, which is installed but cannot be imported (OSError: libhdf5.so.310: cannot open shared "
        "object file); install it again: python -m pip install --force-reinstall h5py")
    other = tmp_path / "other"
    (other / "zcore").mkdir(parents=True)
    (other / "zcore" / "__init__.py").touch()
    # It imports all extras, which takes seconds.
    done = python(f"import sys, zcore.__main__; sys.path.append({str(other)!r}); "
                  "sys.exit(zcore.__main__.main(['doctor']))", folder)
    assert done.returncode == 1
    assert re.search(r"missing *extra hdf5: h5py, which is installed but cannot be imported \(OSError: .*"
                     r"--force-reinstall", done.stdout), done
    used = Path(zcore.__file__).parent.resolve()
    assert (f"unsafe  two copies: {used} is used, and {other}/zcore lies in {other}, too: uninstall one of them, or "
            f"take {other} off PYTHONPATH") in done.stdout, done


@pytest.mark.parametrize(("needing", "code"), [
    ("a picture in a file (without --out it is drawn in the terminal)", "import zcore.cli.show.figure"),
    ("the elevation model", "from zcore.cli.verbs.demo import load; load()"),
])
def test_matplotlib_that_is_broken(module, needing, code):
    folder = module("matplotlib", "raise AttributeError('no _ARRAY_API')\n")
    assert last_line(python(code, folder)) == (
        f"zcore.errors.PackageError: {needing} needs matplotlib, which is installed but cannot be imported "
        "(AttributeError: no _ARRAY_API); install it again: python -m pip install --force-reinstall matplotlib")


@pytest.mark.skipif(zcore.blosc.can_compress("snappy"), reason="this c-blosc has snappy")
def test_cramjam_that_is_broken(module):
    folder = module("cramjam", "raise AttributeError('no snappy')\n")
    chunk = bytearray(zcore.blosc.compress(bytes(1000), typesize=1, cname="lz4"))
    chunk[2] = chunk[2] & 0x1F | 2 << 5
    assert last_line(python(f"import zcore; zcore.blosc.decompress({bytes(chunk)})", folder)).endswith(
        "to read it needs cramjam, which is installed but cannot be imported (AttributeError: no snappy); install it "
        "again: python -m pip install --force-reinstall cramjam")


@pytest.mark.parametrize("exception", [ImportError("no symbol"), ModuleNotFoundError("No module named 'x'", name="x"),
                                       AttributeError("numpy has no attribute 'float'")])
def test_what_a_package_needs_itself_is_no_missing_package(exception):
    with pytest.raises(UnsupportedError, match=r"^this needs Yaml, which is installed but cannot be imported \(.*\); "
                                               r"install it again: python -m pip install --force-reinstall Yaml$"
                       ) as caught:
        with Needing("this needs", "yaml", "asdf", "trees", "Yaml"):
            raise exception
    assert caught.value.__cause__ is exception and caught.value.feature == "trees"


def test_an_extra_that_is_missing():
    with pytest.raises(UnsupportedError, match="^this needs Yaml, which is not installed: python -m pip install "
                                               r'"zcore-array\[asdf\]"$'):
        with Needing("this needs", "no_such_module", "asdf", "trees", "Yaml"):
            import no_such_module  # noqa: F401


@pytest.mark.parametrize("name", ["dask", "xarray", "zarr"])
def test_a_bridge_whose_package_is_missing(name):
    done = python(f"import sys; sys.modules[{name!r}] = None; import zcore.{name}")
    assert last_line(done).startswith("zcore.errors.PackageError: ") and f"zcore-array[{name}]" in done.stderr


def test_a_tiff_file_without_zarr_python(tmp_path):
    (tmp_path / "a.tif").touch()
    done = python("import sys; sys.modules['zarr'] = None; import zcore; zcore.open('a.tif')", cwd=tmp_path)
    assert last_line(done).endswith("TIFF files and zcore.zarr need zarr, which is not installed: "
                                    'python -m pip install "zcore-array[zarr]"')


def test_lack_of_memory_and_ctrl_c_are_no_broken_package():
    for exception in (MemoryError, KeyboardInterrupt):
        with pytest.raises(exception), Needing("this needs", "yaml", "asdf", "trees"):
            raise exception


def test_a_home_that_cannot_be_written(tmp_path):
    """zcore keeps nothing there, and asks for nothing."""
    nowhere = {name: "/dev/null/home" for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    code = f"""
import sys, zcore, zcore.__main__
zcore.create_array({str(tmp_path / "a.zarr")!r}, data=[[1, 2], [3, 4]])
zcore.copy({str(tmp_path / "a.zarr")!r}, {str(tmp_path / "b.zarr")!r})
sys.exit(zcore.__main__.main(["tree", {str(tmp_path)!r}]))
"""
    done = python(code, **nowhere)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]
    assert zcore.open(tmp_path / "b.zarr")[...].tolist() == [[1, 2], [3, 4]]
