"""The table of native codecs: what is in it, and how a program makes steps of its rows."""
import gc
import weakref

import pytest

from tests.each import each
from zcore.kernel.codec.program import Program


class Reversed:
    """A segment whose codec turns the bytes round."""

    def encode(self, data, shape):
        return bytes(data)[::-1]

    def decode(self, data, n_bytes, at_most, shape):
        return bytes(data)[::-1]


@each("step", [
    ("zstd", 3), ("zlib",), ("gzip", 1, 2), ("lz4",), ("blosc", "lz4", 5), ("shuffle",),
    ("scale_offset", "f4", 1.0), ("python",),
])
def test_step_with_other_parameters_than_its_codec_has_is_refused(step):
    with pytest.raises(ValueError, match="unpack"):
        Program([step])


@pytest.mark.parametrize("itemsize", [0, -1])
def test_shuffle_refuses_items_without_bytes(itemsize):
    with pytest.raises(ValueError, match="an item has at least 1 byte"):
        Program([("shuffle", itemsize)])


def test_program_keeps_the_codecs_of_a_step_alive():
    segment = Reversed()
    program, alive = Program([("python", segment, 4, 4, True), ("crc32c",)]), weakref.ref(segment)
    del segment
    gc.collect()
    encoded = program.encode_bytes(b"abcd")
    assert encoded[:4] == b"dcba" and program.decode_new(encoded, 4) == b"abcd"
    del program
    gc.collect()
    assert alive() is None


def test_program_that_is_made_anew_forgets_its_steps():
    program = Program([("zstd", 1, False), ("python", Reversed(), 4, 4, True)], 0, Reversed())
    program.__init__([("crc32c",)])
    assert program.is_native and program.n_steps == 1
    assert program.decode_new(program.encode_bytes(b"abcd"), 4) == b"abcd"


def test_refused_step_leaves_a_program_that_can_be_freed():
    program = Program([("zstd", 1, False)])
    with pytest.raises(ValueError, match="no C form"):
        program.__init__([("zstd", 1, False), ("absent",)])
    del program
    gc.collect()
