"""Damaged files of NumPy as sources: errors of zcore, or the elements that are in them."""
import io
import zipfile

import numpy as np
import pytest

import zcore

pytestmark = pytest.mark.filterwarnings("ignore")
VALUES = np.arange(30, dtype="<i4").reshape(5, 6)
FLIPS = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff)


def npy(values=VALUES):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def npz(save):
    file = io.BytesIO()
    save(file, a=VALUES, **{"g/b": VALUES.T[::2]})
    return file.getvalue()


FILES = {"a.npy": npy(), "f.npy": npy(np.asfortranarray(VALUES)),
         "s.npy": npy(np.zeros(2, [("x", "<f4"), ("y", "S3")])), "0.npy": npy(np.float64(7)),
         "a.npz": npz(np.savez), "d.npz": npz(np.savez_compressed)}


def changed(data, flips_of):
    """Yield a file with each of its bytes changed."""
    for n in range(len(data)):
        for flip in flips_of(n):
            yield data[:n] + bytes([data[n] ^ flip]) + data[n + 1:]
    yield data + b"\0"


@pytest.mark.parametrize("name", FILES)
def test_a_byte_that_is_another(name, tmp_path):
    check(tmp_path / name, changed(FILES[name], lambda n: [FLIPS[n % len(FLIPS)]]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_any_bit_that_is_another(name, tmp_path):
    check(tmp_path / name, changed(FILES[name], lambda n: FLIPS))


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_cut_off(name, tmp_path):
    check(tmp_path / name, (FILES[name][:n] for n in range(len(FILES[name]))), least_copied=0)


def check(path, versions, least_copied=8):
    """Copy versions of a file: these are errors of zcore, or have the right elements.

    Those are what NumPy reads of an .npy file, which has no checksum, and what was saved in an .npz file.
    """
    n_errors = n_copied = 0
    for data in versions:
        path.write_bytes(data)
        try:
            node = zcore.copy(path, zcore.MemoryStore())
        except zcore.ZcoreError as exc:
            assert str(path) in str(exc), exc
            n_errors += 1
            continue
        n_copied += 1
        if path.suffix == ".npy":
            expected = np.load(io.BytesIO(data))
            assert node.dtype == expected.dtype and node[...].tobytes() == expected.tobytes()
        else:
            assert sorted(path for path, _ in node.members(None)) == ["a", "g", "g/b"]
            assert np.array_equal(node["a"][...], VALUES) and np.array_equal(node["g/b"][...], VALUES.T[::2])
    assert n_errors > 50 and n_copied >= least_copied


def header(descr="'<i4'", shape="(30,)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}".encode()


HEADERS = [
    b"", b"(" * 9000, b"[" * 200 + b"]" * 200, b"{" * 9999, b"-" * 9999 + b"1", b"{'descr': 1" + b"\xff" * 50,
    b"1" * 5000, b"f''", b"'\\d'", b"{[]: 1}", b"lambda: 1", b"__import__('os')", b"{**{}}", b"\0" * 70,
    header(order="0"), header(order="'x'"),
    *[header(shape=shape) for shape in (
        "(-1,)", "(True,)", "(2.0,)", "5", "[30]", "(2**9,)", "(1,) * 3", f"({10**30},)", f"(0, {2**62}, 8)",
        "(" + "1," * 70 + ")", "(" + "1," * 64 + "30)")],
    *[header(descr) for descr in (
        "'O'", "'|O8'", "[('a', 'O')]", "'T'", "'x'", "'object'", "'<i4,O'", "'<i3'", "''", "'S0'", "'<U0'", "'V0'",
        "'V99999999999'", "None", "[]", "('<i4', (5,))", "('<i4', (10**9, 10**9))", "('<i4', 5, 6)", "[('a',)]",
        "[('a', '<i4'), ('a', '<i4')]", "[(1, '<i4')]", "{'names': ['a'], 'formats': ['<i4']}",
        "[" * 90 + "('a', '<i4')" + "]" * 90)],
    header("'S0'", f"({2**62},)"), header("'<M8[7/3s]'", "(15,)"), header("'>c8, (2,3)f4'", "(2,)"),
]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
@pytest.mark.parametrize("n_bytes", [0, 120])
def test_hostile_headers(version, n_bytes, tmp_path):
    path = tmp_path / "a.npy"
    for text in HEADERS:
        length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
        path.write_bytes(b"\x93NUMPY" + bytes(version) + length + text + bytes(n_bytes))
        for source in (path, wrapped(path)):
            try:
                node = zcore.copy(source, zcore.MemoryStore())
            except zcore.ZcoreError as exc:
                assert str(source) in str(exc)
                continue
            node = node if isinstance(node, zcore.Array) else node["a"]
            assert node.nbytes == n_bytes, text


def wrapped(path):
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        archive.write(path, "a.npy")
    return path.with_suffix(".npz")


@pytest.mark.parametrize("start, error", [
    (b"\x93NUMPX\1\0", zcore.MetadataError), (b"\x93NUMPY\4\0", zcore.UnsupportedError),
    (b"\x93NUMPY\1\0\x20\x4e" + b" " * 20_000, zcore.MetadataError),
    (b"\x93NUMPY\2\0\xff\xff\xff\xff", zcore.MetadataError), (b"\x93NUMPY\1\0\xff", zcore.MetadataError)])
def test_what_is_no_header(start, error, tmp_path):
    (tmp_path / "a.npy").write_bytes(start)
    with pytest.raises(error, match=r"a\.npy"):
        zcore.copy(tmp_path / "a.npy", zcore.MemoryStore())


def test_a_shape_as_python_2_wrote_it(tmp_path):
    text = header(shape="(5L, 6L)")
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + bytes([len(text), 0]) + text + VALUES.tobytes())
    assert np.array_equal(zcore.copy(tmp_path / "a.npy", zcore.MemoryStore())[...], VALUES)
