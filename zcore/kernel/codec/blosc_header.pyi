"""For type checkers: what `blosc_header.pyx` has for Python."""
from typing import NamedTuple

from zcore.typing import Buffer

class BloscHeaderInfo(NamedTuple):
    compressor: str
    shuffle: str
    memcpyed: bool
    typesize: int
    nbytes: int
    blocksize: int
    cbytes: int
    n_blocks: int
    is_split: bool
    version: int
    versionlz: int
    flags: int

def parse(data: Buffer) -> BloscHeaderInfo: ...
def validate(data: Buffer, expected_nbytes: int | None = None, itemsize: int | None = None) -> BloscHeaderInfo: ...
