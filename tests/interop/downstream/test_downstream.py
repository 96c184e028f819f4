"""An extension outside zcore cimports the kernel: built by its own setup.py, run in a process of its own.

The headers are private and may change with every version. The test shows that the build of such an extension works.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import blosc
import numpy
import pytest

import zcore

HERE = Path(__file__).resolve().parent


def run(*arguments, cwd):
    """Run Python in `cwd` and return what it printed; what it complained of becomes the failure's text."""
    environment = {**os.environ, "CFLAGS": "-O0 -g0"}
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, arguments))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a folder with the built extension."""
    folder = tmp_path_factory.mktemp("downstream")
    for name in ("setup.py", "chunk_reader.pyx", "masking.pyx"):
        shutil.copy(HERE / name, folder)
    run("setup.py", "build_ext", "--inplace", cwd=folder)
    return folder


@pytest.mark.parametrize(("cname", "shuffle"), [
    ("lz4", blosc.SHUFFLE),
    ("zstd", blosc.BITSHUFFLE),
    ("zlib", blosc.NOSHUFFLE),
])
def test_extension_decodes_a_chunk_without_the_gil(project, tmp_path, cname, shuffle):
    data = numpy.arange(20000, dtype="<f4").tobytes()
    (tmp_path / "chunk").write_bytes(blosc.compress(data, typesize=4, cname=cname, shuffle=shuffle))
    code = """if True:
        import pathlib, sys, threading
        import chunk_reader
        folder = pathlib.Path(sys.argv[1])
        stored = (folder / "chunk").read_bytes()
        found = [None] * 4
        def work(i):
            found[i] = chunk_reader.decode(stored, 4)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(each == found[0] for each in found)
        (folder / "content").write_bytes(found[0])
    """
    run("-c", code, tmp_path, cwd=project)
    assert (tmp_path / "content").read_bytes() == data


def test_extension_reads_a_stored_chunk_without_the_gil(project, tmp_path):
    values = numpy.arange(24, dtype=">i4").reshape(4, 6)
    array = zcore.open(tmp_path, mode="w", shape=(4, 9), chunks=(4, 3), dtype=">i4", cname="zstd")
    array[:, :6] = values
    code = """if True:
        import os, sys, threading
        import numpy
        import chunk_reader
        directory = os.open(sys.argv[1], os.O_RDONLY)
        found = numpy.zeros((3, 4, 3), ">i4")
        n_stored = [0, 0, 0]
        def work(i):
            out = found[i].view("u1").reshape(-1)
            n_stored[i] = chunk_reader.read(directory, f"__zdata__/0.{i}.blosc".encode(), out, 4)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert n_stored == [os.stat(f"{sys.argv[1]}/__zdata__/0.{i}.blosc").st_size for i in range(2)] + [None]
        numpy.save(f"{sys.argv[1]}/found.npy", found)
    """
    run("-c", code, tmp_path, cwd=project)
    found = numpy.load(tmp_path / "found.npy")
    assert (found[0] == values[:, :3]).all() and (found[1] == values[:, 3:]).all()
    assert not found[2].any()


def test_damaged_chunk_is_zcores_error_in_the_extension(project, tmp_path):
    stored = bytearray(blosc.compress(bytes(4096), typesize=4, cname="lz4"))
    stored[12] ^= 1            # the stored size
    (tmp_path / "chunk").write_bytes(stored)
    code = """if True:
        import pathlib, sys
        import chunk_reader, zcore.errors
        try:
            chunk_reader.decode(pathlib.Path(sys.argv[1], "chunk").read_bytes(), 4)
        except zcore.errors.CodecError as error:
            print(error.found - error.expected)
    """
    assert abs(int(run("-c", code, tmp_path, cwd=project))) == 1


def test_extension_uses_the_grid_and_the_checksum(project):
    code = """if True:
        import chunk_reader
        assert chunk_reader.spans(100, 10, 8, 3, 5) == [(0, 8, 1), (1, 1, 3), (2, 0, 1)]
        # the check value of CRC-32C, as catalogues of CRCs list it
        assert chunk_reader.checksum(b"123456789") == 0xE3069283
        print("done")
    """
    assert run("-c", code, cwd=project) == "done\n"


def test_extension_adds_a_codec_to_the_table(project):
    code = """if True:
        from zcore.kernel.codec.program import Program
        try:
            Program([("mask", 7)])
        except ValueError as error:
            print(error)
        import masking
        program = Program([("mask", 7), ("zstd", 3, False), ("mask", 255), ("crc32c",)])
        encoded = program.encode_bytes(bytes(1000))
        assert len(encoded) < 100 and encoded[:4] == bytes(255 ^ each for each in bytes.fromhex("28b52ffd"))
        assert program.decode_new(encoded, 1000) == bytes(1000)
        assert Program([("mask", 7)]).encode_bytes(b"abc") == bytes(7 ^ each for each in b"abc")
    """
    assert run("-c", code, cwd=project) == "step 'mask' has no C form\n"
