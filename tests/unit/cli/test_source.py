"""Where the demo's data come from: .npy, .npz and image files, whole, odd, damaged and hostile."""
import io
import os
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from zcore.cli.verbs.demo.source import load


def write(name, content):
    with open(name, "wb") as file:
        file.write(content)
    return name


def npy(descr="<f8", shape="(2,)", elements=b"", version=1):
    """Return the bytes of an .npy file with any header."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + elements


def npz(**members):
    """Return the bytes of an .npz file with any members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_npy", ".npy"), content)
    return file.getvalue()


# Arrays


@pytest.mark.parametrize("data", [
    np.arange(6), np.zeros((2, 0)), np.array(3.0), np.zeros(3, [("é", "<i2"), ("b", ">f8", (2,))]),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
], ids=["1d", "empty", "0d", "structured", "fortran"])
def test_npy_files_are_read_as_they_are(save, data):
    found = load(save("a.NPY.npy", data)).data
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


def test_npy_files_are_mapped(save):
    source = load(save("a.npy", np.arange(6)))
    assert isinstance(source.data, np.memmap) and source.note is None and source.title == "a.npy"


def test_old_headers_are_read_without_a_word():
    write("old.npy", npy(shape="(2L,)", elements=bytes(16)))
    assert load("old.npy").data.tolist() == [0.0, 0.0]


def test_which_array_of_an_archive_is_taken_is_said():
    np.savez("one.npz", only=np.arange(5))
    source = load("one.npz")
    assert (source.title, source.note) == ("one.npz, only", None)
    np.savez_compressed("two.npz", first=np.arange(5), second=np.arange(7.0))
    source = load("two.npz")
    assert (source.title, source.quantity) == ("two.npz, first", "first")
    assert source.note == "one of 2 arrays: first, second; --array takes another"
    assert load("two.npz", "second").data.tolist() == [0, 1, 2, 3, 4, 5, 6]
    np.savez("many.npz", *[np.arange(2)] * 9)
    assert "arr_7, …; --array" in load("many.npz").note


def test_other_members_of_an_archive_are_no_arrays():
    content = io.BytesIO()
    np.save(content, np.arange(3))
    write("mixed.npz", npz(readme=b"text", a_npy=content.getvalue()))
    assert load("mixed.npz").title == "mixed.npz, a"


def test_python_objects_are_not_unpickled(refused):
    class Trap:
        def __reduce__(self):
            return os.mkdir, ("sprung",)

    np.save("object.npy", np.array([Trap()], object), allow_pickle=True)
    np.save("field.npy", np.array([(1, Trap())], [("a", "i4"), ("b", "O")]), allow_pickle=True)
    np.savez("object.npz", a=np.array([Trap()], object))
    why = "holds pickled objects, which are never loaded"
    assert refused("object.npy") == f"object.npy {why}"
    assert refused("field.npy") == f"field.npy {why}"
    assert refused("object.npz") == f"object.npz: a.npy {why}"
    assert not os.path.exists("sprung") and not os.path.exists("zcore-demo")


NO_ARRAY = r"is not a .npy array: expected b'\x93NUMPY' at its beginning"


@pytest.mark.parametrize(("name", "content", "words"), [
    ("empty.npy", b"", NO_ARRAY),
    ("text.npy", b"1 2 3\n", NO_ARRAY),
    ("pickle.npy", b"\x80\x04]\x94.", NO_ARRAY),
    ("zip.npy", b"PK\x05\x06" + bytes(18), NO_ARRAY),
    ("cut.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order'", "header of 118 bytes, found 32"),
    ("version.npy", npy(version=9), "version"),
    ("short.npy", npy(shape="(9999,)", elements=b"1234"), "expected a header and elements of 80063 bytes, found 75"),
    ("huge.npy", npy(shape="(2**60,)".replace("2**60", str(2**60))), "array is too big"),
    ("negative.npy", npy(shape="(-1, -5)", elements=bytes(40)), ""),
    ("expression.npy", npy(shape="(__import__('os').abort(),)"), ""),
    ("unknown.npy", npy(descr="x9"), "data type 'x9' not understood"),
    ("empty.npz", b"PK\x05\x06" + bytes(18), "it holds no array"),
    ("text.npz", b"1 2 3\n", "not a zip file"),
    ("damaged.npz", b"PK\x03\x04" + b"nonsense" * 10, "not a zip file"),
    ("member.npz", npz(a_npy=b"1 2 3"), f"a.npy {NO_ARRAY}"),
    ("bomb.npz", npz(a_npy=npy(shape=f"({2**60},)")), "array is too big"),
    ("text.csv", b"1,2,3\n", "this is neither .npy nor .npz, nor an image that Pillow knows"),
    ("cut.png", b"\x89PNG\r\n\x1a\n\x00\x00", "Pillow"),
    ("noname", b"", "Pillow"),
], ids=lambda value: value if isinstance(value, str) and len(value) < 15 else "")
def test_files_that_hold_no_array_are_refused_in_a_sentence(refused, name, content, words):
    complaint = refused(write(name, content))
    assert complaint.startswith((f"cannot read '{name}': ", f"{name}: ", f"{name} is not a .npy array")), complaint
    assert words in complaint and "allow_pickle" not in complaint and "unsafe" not in complaint
    assert not os.path.exists("zcore-demo")


@pytest.mark.parametrize("length", [60, 100, 500])
def test_images_that_are_cut_off(refused, length):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 20, 3), dtype="u1")).save("photo.png")
    with open("photo.png", "rb") as file:
        write("cut.png", file.read(length))
    assert refused("cut.png").startswith("cannot read 'cut.png': ")


# Paths


@pytest.mark.parametrize(("path", "sentence"), [
    ("none.npy", "no such file or directory: 'none.npy'"),
    ("", "no such file or directory: ''"),
    ("a.npy/b.npy", "not a directory: 'a.npy/b.npy'"),
    (".", "'.' is a directory; PATH names a file: .npy, .npz or an image"),
    ("/dev/null", "'/dev/null' is not a regular file; PATH names a file: .npy, .npz or an image"),
    ("https://example.org/a.npy", "'https://example.org/a.npy' is a URL; PATH names a file of this machine: "
                                  ".npy, .npz or an image"),
    ("file:///a.npy", "'file:///a.npy' is a URL; PATH names a file of this machine: .npy, .npz or an image"),
])
def test_odd_paths(save, refused, path, sentence):
    save("a.npy", np.arange(3))
    assert refused(path) == sentence
    assert os.listdir() == ["a.npy"]


def test_names_that_look_like_a_scheme_are_names(save):
    assert load(save("file:a.npy", np.arange(3))).name == "file:a.npy"


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.png"])
def test_files_that_may_not_be_read(save, refused, name):
    os.chmod(write(name, b""), 0)
    if os.access(name, os.R_OK):
        pytest.skip("this user may read anything")
    assert refused(name) == f"permission denied: '{name}'"


def test_array_names_an_array_of_an_archive(save, refused):
    np.savez("two.npz", first=np.arange(5), second=np.arange(7.0))
    sentence = "cannot read 'two.npz': it has no array 'third'; it has first, second"
    assert refused("two.npz", "--array", "third") == sentence
    sentence = "--array names an array of an .npz file, and PATH is not one"
    assert refused(save("a.npy", np.arange(3)), "--array", "b") == sentence
    assert refused("--array", "b") == sentence


# Images


def random_dots(shape, dtype="u1"):
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize(("name", "dots"), [
    ("grey.png", random_dots((4, 3))),
    ("grey and alpha.png", random_dots((4, 3, 2))),
    ("colour.png", random_dots((4, 3, 3))),
    ("colour and alpha.png", random_dots((4, 3, 4))),
    ("deep.png", random_dots((4, 3), "u2")),
    ("deep.tif", random_dots((4, 3), "u2")),
    ("big-endian.tif", random_dots((4, 3), "u2").astype(">u2")),
    ("signed.tif", random_dots((4, 3), "i4")),
    ("float.tif", np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3)),
    ("bits.png", random_dots((4, 3)) > 99),
    ("colour.PPM", random_dots((4, 3, 3))),
])
def test_images_are_read_as_what_they_are(name, dots):
    Image.fromarray(dots).save(name)
    source = load(name)
    assert source.data.dtype.newbyteorder("=") == dots.dtype.newbyteorder("=")
    np.testing.assert_array_equal(source.data, dots)
    assert source.is_image and source.note is None


def test_jpeg_is_uint8():
    Image.fromarray(random_dots((40, 30, 3))).save("photo.jpg")
    data = load("photo.jpg").data
    assert (data.shape, data.dtype) == ((40, 30, 3), np.uint8)


@pytest.mark.parametrize(("mode", "name", "shape"), [
    ("P", "palette.png", (4, 3, 3)), ("CMYK", "print.tif", (4, 3, 3)), ("YCbCr", "video.tif", (4, 3, 3)),
])
def test_palettes_and_colours_of_print_become_colours(mode, name, shape):
    image = Image.fromarray(np.full((4, 3, 3), 255, "u1")).convert(mode)
    image.save(name)
    data = load(name).data
    assert data.shape == shape and data.dtype == np.uint8 and data.min() > 250


def test_a_palette_with_transparency_has_alpha():
    image = Image.fromarray(np.zeros((4, 3), "u1")).convert("P")
    image.save("glass.png", transparency=0)
    assert load("glass.png").data[0, 0].tolist() == [0, 0, 0, 0]


def test_of_several_frames_the_first_is_taken_and_this_is_said():
    frames = [Image.fromarray(np.full((4, 3), value, "u1")) for value in (10, 200)]
    frames[0].save("film.tif", save_all=True, append_images=frames[1:])
    source = load("film.tif")
    assert source.data.max() == 10 and source.note == "the first of its frames"


def test_colours_of_16_bits_are_reduced_and_this_is_said():
    def part(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + struct.pack(">6H", *[0x1234] * 6)
    write("deep.png", b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0))
          + part(b"IDAT", zlib.compress(row)) + part(b"IEND", b""))
    source = load("deep.png")
    assert source.data.tolist() == [[[0x12] * 3] * 2] and source.note == "8 of its 16 bits a colour"


# Without the extra


@pytest.mark.parametrize(("arguments", "what", "module", "package"), [
    ([], "the elevation model", "matplotlib", "matplotlib"),
    (["a.png"], "an image", "PIL", "Pillow"),
    (["a.npy"], "the picture (--no-picture goes without)", "matplotlib", "matplotlib"),
])
def test_what_is_missing_is_named_and_how_to_get_it(monkeypatch, save, refused, arguments, what, module, package):
    save("a.npy", np.arange(6))
    write("a.png", b"")
    monkeypatch.setitem(sys.modules, module, None)
    assert refused(*arguments) == (f"{what} needs {package}, which is not installed: python -m pip install "
                                   '"zcore[demo]"')
    assert not os.path.exists("zcore-demo")
