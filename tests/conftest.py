"""Settings of every test: repeatable examples, no deadlines.

Warnings are errors and `slow` is left out by default; both are said in pyproject.toml.
"""
from types import SimpleNamespace

import hypothesis
import pytest

# Derandomized: a run is a fact about the tree, not about the day. Without deadline: no test measures time.
hypothesis.settings.register_profile("zcore", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("zcore")


def pytest_ignore_collect(collection_path):
    """Leave helpers and scripts unread: pyproject.toml asks for the doctests of modules, those of zcore are meant."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None


@pytest.fixture(scope="session")
def sharded():
    """Arrays of shards with any codecs around and in them: `create` and `open`, which return an `Array`."""
    from zcore import lifecycle
    from zcore.arrays import Array
    from zcore.engine import Binding
    from zcore.formats import zarr_v3
    from zcore.model.chunk_keys import ChunkKeyEncoding
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.options import Options
    from zcore.stores.base import Store
    from zcore.stores.directory import DirectoryStore

    def store_of(place):
        return place if isinstance(place, Store) else DirectoryStore(str(place))

    def options_of(lock=True, missing="fill", threads=None, strict=True, write_empty_chunks=False):
        return Options(lock, missing, threads, strict, write_empty_chunks)

    def specs(codecs):
        return [CodecSpec(codec["name"], codec.get("configuration")) for codec in codecs]

    little = {"name": "bytes", "configuration": {"endian": "little"}}

    def create(place, shape, dtype, shards, chunks, *, codecs=(little,), index_codecs=(little, {"name": "crc32c"}),
               index_location="end", fill_value=0, before=(), after=(), **options):
        configuration = {"chunk_shape": list(chunks), "codecs": list(codecs), "index_codecs": list(index_codecs),
                         "index_location": index_location}
        metadata = ArrayMetadata(
            shape, dtype, shards, ChunkKeyEncoding.v3(),
            (*specs(before), CodecSpec("sharding_indexed", configuration), *specs(after)), fill_value, attributes={})
        return Array(lifecycle.create(store_of(place), "", zarr_v3, metadata, None, options_of(**options),
                                      overwrite=True))

    def open(place, **options):
        return Array(Binding(store_of(place), "", zarr_v3, options_of(**options)))

    return SimpleNamespace(create=create, open=open)
