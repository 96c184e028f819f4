"""`BloscCodec` and the words for its parameters as zarr-python has them: ``BloscShuffle.bitshuffle`` is that text."""
from types import SimpleNamespace

from zcore.codecs.bytes_bytes.compressors import SHUFFLES, BloscCodec
from zcore.kernel.codec.compress import COMPRESSORS

__all__ = ["BloscCname", "BloscCodec", "BloscShuffle"]

BloscCname: SimpleNamespace = SimpleNamespace(**{name: name for name in COMPRESSORS})
BloscShuffle: SimpleNamespace = SimpleNamespace(**{name: name for name in SHUFFLES})
