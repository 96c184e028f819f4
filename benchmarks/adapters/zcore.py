"""zcore itself: the `__zmeta__` view, locks on, as a user gets it."""
import zcore

from benchmarks import fixtures
from benchmarks.adapters import Base


class Adapter(Base):
    view = fixtures.ZMETA
    kinds = Base.kinds | {"import"}
    module = "zcore"

    def versions(self):
        return {"zcore": zcore.__version__}

    def activate(self):
        zcore.config.threads = self.threads

    def open(self, path):
        return zcore.open(path)

    def read(self, handle):
        return handle[...]

    def read_first(self, handle, count):
        return handle[:count]

    def create(self, path, shape, chunks):
        blosc = zcore.codecs.BloscCodec(cname=fixtures.CNAME, clevel=fixtures.CLEVEL, shuffle="shuffle")
        return zcore.create_array(path, shape=shape, chunks=chunks, dtype="<f4", fill_value=0.0,
                                  zarr_format="zmeta", compressors=blosc)

    def write(self, handle, data):
        handle[...] = data
