"""The blocks of an open ASDF file, and how they are read.

A block is bytes; which array they are, the tree says. Nothing is read before it is asked for, and of an uncompressed
block no more than that. `zcore.asdf.file_layout` parses the header of a block.
"""
from __future__ import annotations

import mmap
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np

from zcore.asdf import checksums, compression, scan
from zcore.buffers import flat_view
from zcore.descriptors import duplicate
from zcore.errors import (
    AsdfFormatError,
    ChecksumError,
    OutOfMemoryError,
    TruncatedError,
    UnsupportedError,
    noted,
    warn_of,
)
from zcore.text.arguments import as_bool
from zcore.text.printable import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from zcore.asdf.file_layout import BlockHeader
    from zcore.asdf.scan import Found, Front
    from zcore.ranges import ByteSource
    from zcore.typing import Memory

    _Out = TypeVar("_Out", bound=Memory)


class Block:
    """One block; `BlockList` makes it.

    Attributes
    ----------
    number : int
        In the order of the file, from 0.
    header : BlockHeader
        As in the file; the next six are of it.
    offset, data_offset : int
        Where the block, and its content, begin in the file.
    allocated, used, data_size : int
        Bytes that the file has room for, that are stored, and that they decode to.
    is_streamed : bool
        Whether the block reaches to the end of the file.
    path : str
        Of the file.
    compression : str or None
        Name of the compression.
    is_compressed : bool
        Whether the stored bytes have to be decoded.
    checksum : bytes or None
        The MD5 in the header, 16 bytes.
    """

    __slots__ = ("_source", "_verifies", "header", "number", "offset", "data_offset", "allocated", "used", "data_size",
                 "is_streamed", "path", "compression", "is_compressed", "checksum")

    def __init__(self, source: ByteSource, number: int, header: BlockHeader, verifies: bool) -> None:
        self._source = source
        self._verifies = verifies
        self.number: int = number
        self.header: BlockHeader = header
        self.offset: int = header.offset
        self.data_offset: int = header.data_offset
        self.allocated: int = header.allocated
        self.used: int = header.used
        self.data_size: int = header.data_size
        self.is_streamed: bool = header.is_streamed
        self.path: str = source.path
        self.compression: str | None = header.compression.decode("latin-1") or None
        self.is_compressed: bool = self.compression is not None
        self.checksum: bytes | None = None if header.checksum == checksums.NO_CHECKSUM else header.checksum

    def __repr__(self) -> str:
        kind = "streamed" if self.is_streamed else self.compression or "raw"
        return f"<Block {self.number} at byte {self.offset}: {kind}, {plural(self.data_size, 'byte')}>"

    def is_of(self, source: ByteSource) -> bool:
        """Return whether the block lies in a file that is open as `source`."""
        return self._source is source

    @property
    def verifies(self) -> bool:
        """Whether the checksum is compared by default: the file was opened so, and the block can be decoded."""
        return self._verifies and (not self.is_compressed or self.compression in compression.KNOWN)

    def extent(self) -> tuple[str, int, int] | None:
        """Return (path, offset, length) of the data in the file, or None when they are compressed."""
        return None if self.is_compressed else (self.path, self.data_offset, self.used)

    def descriptor(self) -> int:
        """Return a new descriptor of the file, which the caller closes."""
        return duplicate(self._source.fd)

    @overload
    def read(self, out: None = None, *, verify: bool | None = None) -> memoryview: ...

    @overload
    def read(self, out: _Out, *, verify: bool | None = None) -> _Out: ...

    def read(self, out=None, *, verify=None):
        """Return the decoded data, a writable `memoryview` of new memory.

        Parameters
        ----------
        out : writable bytes-like, optional
            Takes the data and is returned: C-contiguous and of `data_size` bytes.
        verify : bool, optional
            Compare the checksum, if there is one. By default as the file was opened.

        Raises
        ------
        ChecksumError
            Neither the stored nor the decoded bytes have it.
        AsdfFormatError
            The stored bytes are damaged, or decode to another size.
        UnsupportedError
            The compression is unknown.
        """
        try:
            if self.is_compressed:
                compression.check(self.compression, self.used, self.data_size)
            if out is None:
                out = view = self._new_memory()
            else:
                view = flat_view(out, "out", writable=True)
                if len(view) != self.data_size:
                    raise ValueError(f"out has {len(view)} bytes, block {self.number} decodes to {self.data_size}")
            if self.is_compressed:
                compression.decode(self.compression, self._source, self.data_offset, self.used, view)
            else:
                self._source.read_into(self.data_offset, view)
        except AsdfFormatError as exc:
            raise self._placed(exc) from exc.__cause__
        if self._verifies if verify is None else as_bool(verify, "verify"):
            self._verify(view)
        return out

    def _new_memory(self):
        try:
            # NumPy asks for large pages, and writes nothing.
            return memoryview(np.empty(self.data_size, "u1"))
        except (MemoryError, ValueError) as exc:
            raise OutOfMemoryError(f"no memory for the {self.data_size} bytes of block {self.number}", place=self.path,
                                   nbytes=self.data_size) from exc

    def _placed(self, exc):
        """Return an error that names the block and the file."""
        offset = self.offset if exc.offset is None else exc.offset
        return AsdfFormatError(f"block {self.number} at byte {self.offset}: {exc.message}", place=self.path,
                               path=self.path, member=exc.member, offset=offset, block=self.number)

    def read_range(self, offset: int, length: int) -> memoryview:
        """Return `length` bytes of the data from `offset` on, a writable `memoryview`.

        Of an uncompressed block only these are read. Only for the whole block a checksum is compared, as by `read`.

        Raises
        ------
        AsdfFormatError
            They do not lie in the data.
        """
        if offset < 0 or length < 0 or offset + length > self.data_size:
            raise self._placed(AsdfFormatError(f"bytes {offset} to {offset + length} of {self.data_size}"))
        if self.is_compressed or length == self.data_size:
            return self.read()[offset:offset + length]
        view = memoryview(np.empty(length, "u1"))
        self._source.read_into(self.data_offset + offset, view)
        return view

    def memmap(self) -> npt.NDArray[np.uint8]:
        """Return the data as an array of bytes that is mapped from the file, and cannot be written to.

        Raises
        ------
        ValueError
            The block is compressed.

        Notes
        -----
        Nothing is read here, and no checksum compared: `verify` does that. If the file is shortened while it is
        mapped, the process that reads there dies; `read` and `read_range` have no such danger.
        """
        if self.is_compressed:
            raise ValueError(f"block {self.number} of {self.path} is compressed by {self.compression} and cannot be "
                             "mapped")
        if self.used == 0:
            return np.empty(0, "u1")
        if self._source.fd is None:
            raise UnsupportedError(f"{self.path} is remote: it cannot be mapped", feature="maps of remote files")
        skipped = self.data_offset % mmap.ALLOCATIONGRANULARITY
        try:
            mapped = mmap.mmap(self._source.fd, skipped + self.used, access=mmap.ACCESS_READ,
                               offset=self.data_offset - skipped)
        except ValueError as exc:
            raise TruncatedError(f"{self.path} ends before block {self.number} does", key=self.path,
                                 offset=self.data_offset) from exc
        except OSError as exc:
            raise self._source.fault("map", exc) from exc
        return np.frombuffer(mapped, "u1", self.used, skipped)

    def stored_pieces(self) -> Iterator[bytes]:
        """Iterate over the bytes as they are stored."""
        return self._source.pieces(self.data_offset, self.used)

    def verify(self) -> bool:
        """Compare the checksum; returns whether there is one.

        Raises : ChecksumError, if it is of other bytes.
        """
        if self.checksum is None:
            return False
        digest = checksums.digest_of(self.stored_pieces())
        if digest is not None and digest != self.checksum and self.is_compressed:
            self.read(verify=True)
        elif digest is not None and digest != self.checksum:
            self._fail_checksum(digest)
        return digest is not None

    def _verify(self, decoded):
        """Compare the checksum with that of the decoded, and of the stored bytes.

        Notes : ASDF file layout, "Block header", checksum: see `checksums` for why both.
        """
        if self.checksum is None:
            return
        digest = checksums.digest_of(self.stored_pieces() if self.is_compressed else [decoded])
        if digest is None or digest == self.checksum:
            return
        if not self.is_compressed or checksums.digest_of([decoded]) != self.checksum:
            self._fail_checksum(digest)

    def _fail_checksum(self, digest):
        found = ("neither the stored nor the decoded bytes have it" if self.is_compressed else
                 f"the bytes have {digest.hex()}")
        raise ChecksumError(f"block {self.number} at byte {self.offset}: the MD5 is {self.checksum.hex()}, {found}",
                            place=self.path, key=self.path, offset=self.offset, expected=self.checksum.hex(),
                            found=digest.hex(), direction="decode")


class BlockList(Sequence[Block]):
    """The blocks of a file, in its order; a negative number counts from the end.

    They are looked for at the first use. If the walk along the file ends with a fault, the blocks before
    it have their numbers; operations that need the number of blocks raise the fault.
    """

    def __init__(self, source: ByteSource, front: Front, verifies: bool = True) -> None:
        self._source = source
        self.path: str = source.path
        self._front = front
        self._verifies = verifies
        self._found = None
        self._blocks = {}

    @property
    def found(self) -> Found:
        """The result of `scan.find_blocks`."""
        if self._found is None:
            with noted() as notes:
                found = scan.find_blocks(self._source, self._front)
                if found.fault is not None:
                    # Once more with the new size of the file: another process may be appending a block.
                    self._source.refresh(self._source.size)
                    notes.clear()
                    found = scan.find_blocks(self._source, self._front)
                self._found = found
            warn_of(self.path, notes)
        return self._found

    def forget(self, front: Front) -> None:
        """Look for the blocks anew: the file has changed."""
        self._front, self._found, self._blocks = front, None, {}

    @property
    def fault(self) -> AsdfFormatError | None:
        """The AsdfFormatError that the walk ended with, or None."""
        if self.found.fault is None:
            return None
        # A copy: the traceback of what is raised would keep all that the caller has.
        fault = copy(self.found.fault)
        fault.path = fault.place = self.path
        fault.message = f"block {fault.block}: {fault.message}"
        return fault

    def __len__(self) -> int:
        if self.fault is not None:
            raise self.fault
        return len(self.found.offsets)

    @overload
    def __getitem__(self, number: int) -> Block: ...

    @overload
    def __getitem__(self, number: slice) -> list[Block]: ...

    def __getitem__(self, number):
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        n_blocks = len(self.found.offsets)
        if number < 0:
            number += len(self)
        if not 0 <= number < n_blocks:
            # An IndexError, too: it ends an iteration, unless a fault did before.
            raise self.fault or _NoBlock(f"there is no block {number}, the file has {n_blocks}", place=self.path,
                                         path=self.path, block=number)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = Block(self._source, number, self._header(number), self._verifies)
        return block

    def _header(self, number):
        """Return the header of a block; another writer may have changed the file since it was found."""
        try:
            header = scan.read_block_header(self._source, self.found.offsets[number])
            if self._source.is_far and self.found.is_indexed:
                self._check_end(header, number)
            return header
        except AsdfFormatError as exc:
            exc.place = exc.path = self.path
            exc.block = number
            raise

    def _check_end(self, header, number):
        """Raise AsdfFormatError unless a block ends where the index says that the next one begins."""
        offsets = self.found.offsets
        following = offsets[number + 1] if number + 1 < len(offsets) else self.found.end
        if header.end != following or header.is_streamed:
            raise AsdfFormatError(f"the block ends at byte {header.end}, and the block index has {following} next",
                                  offset=header.offset, member="allocated_size")

    def __repr__(self) -> str:
        return f"<{plural(len(self.found.offsets), 'block')} of {self.path}{', then a fault' if self.fault else ''}>"


class _NoBlock(AsdfFormatError, IndexError):
    """A block number that the file does not have."""
