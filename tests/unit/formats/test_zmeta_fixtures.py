"""The arrays in `fixtures/zmeta`, made byte by byte without zcore, judged by other readers of their chunks."""
import io
import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.each import each
from zcore.formats import format_of

zmeta = format_of("zmeta")

FIXTURES = Path(__file__).parents[2] / "fixtures" / "zmeta"
ARRAYS = sorted(FIXTURES.glob("*.zarr"))


def decompress(chunk):
    """Decode a chunk by python-blosc, or, where that lacks snappy, by cramjam (no block of ours is split)."""
    if chunk[2] >> 5 != 2:
        return pytest.importorskip("blosc").decompress(chunk)
    snappy = pytest.importorskip("cramjam").snappy
    nbytes, blocksize = np.frombuffer(chunk, "<u4", 2, 4).tolist()
    starts = np.frombuffer(chunk, "<i4", -(-nbytes // blocksize), 16)
    blocks = []
    for start in starts:
        length = int.from_bytes(chunk[start:start + 4], "little")
        block = bytes(snappy.decompress_raw(chunk[start + 4:start + 4 + length]))
        if chunk[2] & 1:
            block = np.frombuffer(block, "u1").reshape(chunk[3], -1).T.tobytes()
        blocks.append(block)
    return b"".join(blocks)


def read(directory):
    """Read an array with nothing of zcore but its metadata."""
    array = zmeta.parse_array((directory / "__zmeta__").read_bytes(), directory.name)
    # NumPy's `copy` would leave the bytes between the fields of a structure undefined.
    filled = np.frombuffer(bytearray(array.fill_bytes * max(array.size, 1)), array.dtype)
    elements = filled[:array.size].reshape(array.shape)
    for file in sorted(directory.glob("__zdata__/*")):
        coords = array.chunk_keys.decode(f"__zdata__/{file.name}", array.ndim)
        if coords is None or any(i >= n for i, n in zip(coords, array.grid_shape, strict=True)):
            continue
        chunk = np.frombuffer(decompress(file.read_bytes()), array.dtype).reshape(array.chunk_shape)
        target = elements[tuple(slice(i * n, (i + 1) * n) for i, n in zip(coords, array.chunk_shape, strict=True))]
        target[...] = chunk[tuple(slice(0, n) for n in target.shape)]
    return elements


def test_fixtures_are_what_their_script_makes():
    """They are never regenerated silently."""
    made = runpy.run_path(str(FIXTURES / "make_zmeta_arrays.py"))["build"]()
    expected = {name: content for name, content in made.items() if name.endswith(".npy")}
    stored = {
        str(file.relative_to(FIXTURES)): file.read_bytes()
        for directory in ARRAYS for file in directory.rglob("*") if file.is_file()
    }
    assert {name: content for name, content in made.items() if name not in expected} == stored
    for name, content in expected.items():
        assert np.load(io.BytesIO(content)).tobytes() == np.load(FIXTURES / name).tobytes()


@each("directory", ARRAYS, ids=lambda directory: directory.stem)
def test_elements_are_the_expected_ones(directory):
    """ZM-META-09, ZM-META-10, ZM-CHK-02, ZM-CHK-04, ZM-CHK-06, ZM-CHK-08, ZM-CHK-10"""
    expected = np.load(directory.with_suffix(".npy"), allow_pickle=False)
    elements = read(directory)
    assert elements.dtype == expected.dtype
    assert elements.tobytes() == expected.tobytes()


@each("directory", ARRAYS, ids=lambda directory: directory.stem)
def test_document_survives_a_rewrite(directory):
    """ZM-META-14"""
    array = zmeta.parse_array((directory / "__zmeta__").read_bytes(), directory.name)
    assert zmeta.parse_array(zmeta.render_array(array), directory.name) == array


def test_all_kinds_of_2016_are_among_the_fixtures():
    assert len(ARRAYS) == 18
