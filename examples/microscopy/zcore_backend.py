"""A backend of ome-writers that stores by zcore: OME-Zarr from a microscope, one frame after the other.

ome-writers brings the groups and their metadata, and says where each frame belongs. A `zcore.Writer` of each position
gathers the frames, and stores whole chunks or shards while the next ones come.

    settings = ome_writers.AcquisitionSettings(root_path="cells.ome.zarr", dimensions=..., dtype="uint16")
    with zcore_backend.create_stream(settings) as stream:
        for frame in camera:
            stream.append(frame)
"""
import numpy as np
from ome_writers import OMEStream
from ome_writers._backends._yaozarrs import YaozarrsBackend
from ome_writers._router import FrameRouter

import zcore

COMPRESSORS = {
    "none": None,
    "zstd": zcore.codecs.ZstdCodec(level=3),
    "blosc-zstd": zcore.codecs.BloscCodec(cname="zstd", clevel=3, shuffle=1),
    "blosc-lz4": zcore.codecs.BloscCodec(cname="lz4", clevel=5, shuffle=1),
}


def create_stream(settings):
    """Return a stream as `ome_writers.create_stream` does, which stores by zcore."""
    settings.validate_stream_ready()
    settings = settings.model_copy(deep=True)
    backend, router = ZcoreBackend(), FrameRouter(settings)
    backend.prepare(settings, router)
    return OMEStream(backend, router, settings)


class ZcoreBackend(YaozarrsBackend):
    """Stores the frames of each position by a `zcore.Writer`."""

    def prepare(self, settings, router):
        self._is_unbounded = settings.is_unbounded
        super().prepare(settings, router)

    def finalize(self):
        for array in self._arrays:
            array.close()
        super().finalize()

    def _get_yaozarrs_writer(self):
        return self._create

    def _create(self, path, shape, dtype, chunks, *, shards, dimension_names, overwrite, compression):
        kind = Boxes if not self._is_unbounded else Stack if len(shape) == 3 else Growing
        return kind(zcore.create_array(
            path, shape=(0, *shape[1:]) if self._is_unbounded else shape, dtype=dtype, chunks=chunks, shards=shards,
            dimension_names=dimension_names, overwrite=overwrite, compressors=COMPRESSORS[compression],
            checksum=False))

    def _should_use_chunk_buffering(self, storage_dims):
        return False       # the writer gathers the frames

    def _reopen_arrays(self):
        return [zcore.open_array(self._root / path / "0", mode="r") for path in self._image_group_paths]


class Boxes:
    """An array of a known shape, as ome-writers knows arrays. A read waits until all frames are stored."""

    def __init__(self, array):
        self.array, self.writer, self.dtype, self.shape = array, array.writer(), array.dtype, array.shape
        self.is_closed = False

    def __setitem__(self, index, frame):
        self.writer.write(index, frame)

    def __getitem__(self, key):
        if not self.is_closed:
            self.writer.flush()
        return self.array[key]

    def close(self):
        self.writer.close()
        self.is_closed = True


class Growing(Boxes):
    """An array whose first dimension has no end. It grows by whole chunks or shards, and is cut when it is closed."""

    def resize(self, shape):
        self.shape = tuple(shape)
        unit = (self.array.shards or self.array.chunks)[0]
        self.array.resize(-(-shape[0] // unit) * unit, *shape[1:])

    def close(self):
        super().close()
        self.array.resize(self.shape)


class Stack(Boxes):
    """Frames behind each other, without an end. What the shape covers is there, also for other processes."""

    def __setitem__(self, index, frame):
        self._fill(index[0])
        self.writer.append(frame)

    def __getitem__(self, key):
        self._fill(self.shape[0])
        return super().__getitem__(key)

    def resize(self, shape):
        self.shape = tuple(shape)

    def close(self):
        self._fill(self.shape[0])
        super().close()

    def _fill(self, length):
        """Append empty frames in the place of those that were skipped."""
        if not self.is_closed:
            for _ in range(length - self.writer.n_given):
                self.writer.append(np.zeros(self.shape[1:], self.dtype))
