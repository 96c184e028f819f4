"""zcore itself: the `__zmeta__` view, locks on, as a user gets it."""
import zcore
from benchmarks import fixtures
from benchmarks.adapters import Base
from zcore import codecs, config, create_array
from zcore import open as open_array


class Adapter(Base):
    view = fixtures.ZMETA
    kinds = Base.kinds | {"import"}
    module = "zcore"

    def versions(self):
        return {"zcore": zcore.__version__}

    def activate(self):
        config.threads = self.threads

    def open(self, path):
        return open_array(path)

    def read(self, handle):
        return handle[...]

    def read_first(self, handle, count):
        return handle[:count]

    def create(self, path, shape, chunks):
        blosc = codecs.BloscCodec(cname=fixtures.CNAME, clevel=fixtures.CLEVEL, shuffle="shuffle")
        return create_array(path, shape=shape, chunks=chunks, dtype="<f4", fill_value=0.0, zarr_format="zmeta",
                            compressors=blosc)

    def write(self, handle, data):
        handle[...] = data
