"""Settings of every test: repeatable examples, no deadlines.

Warnings are errors and `slow` is left out by default; both are said in pyproject.toml.
"""
import json
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

# Derandomized: a run is a fact about the tree, not about the day. Without deadline: no test measures time.
hypothesis.settings.register_profile("zcore", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("zcore")


def pytest_ignore_collect(collection_path):
    """Leave helpers and scripts unread: pyproject.toml asks for the doctests of modules, those of zcore are meant."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None


class ShardFormat:
    """A format that writes down what its caller has put together: arrays of any chain, without a format's rules."""

    name = "test"
    array_document = "array.json"
    attributes_document = "attributes.json"
    chunk_directory = "c"

    @staticmethod
    def render_array(metadata):
        return json.dumps({
            "shape": metadata.shape, "dtype": metadata.dtype.str, "chunk_shape": metadata.chunk_shape,
            "fill": metadata.fill_bytes.hex(), "separator": metadata.chunk_keys.separator,
            "codecs": [(spec.name, spec.configuration) for spec in metadata.codecs]}).encode()

    @staticmethod
    def parse_array(raw, path):
        from zcore.model.chunk_keys import ChunkKeyEncoding
        from zcore.model.metadata import ArrayMetadata, CodecSpec

        members = json.loads(raw)
        dtype = np.dtype(members["dtype"])
        fill = bytes.fromhex(members["fill"])
        return ArrayMetadata(members["shape"], dtype, members["chunk_shape"],
                             ChunkKeyEncoding("c", separator=members["separator"]),
                             [CodecSpec(*codec) for codec in members["codecs"]],
                             np.frombuffer(fill, dtype)[0], fill)

    @staticmethod
    def parse_attributes(raw, path):
        return {} if raw is None else json.loads(raw)

    @staticmethod
    def render_attributes(attributes):
        return json.dumps(attributes).encode()


@pytest.fixture(scope="session")
def sharded():
    """Arrays of shards, without a format that documents them: `create` and `open`, which return an `Array`."""
    from zcore import lifecycle
    from zcore.arrays import Array
    from zcore.engine import Binding
    from zcore.model.chunk_keys import ChunkKeyEncoding
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.options import Options
    from zcore.stores.base import Store
    from zcore.stores.directory import DirectoryStore

    def store_of(place):
        return place if isinstance(place, Store) else DirectoryStore(str(place))

    def options_of(lock=True, missing="fill", threads=None, strict=True, write_empty_chunks=False):
        return Options(lock, missing, threads, strict, write_empty_chunks)

    little = {"name": "bytes", "configuration": {"endian": "little"}}

    def create(place, shape, dtype, shards, chunks, *, codecs=(little,), index_codecs=(little, {"name": "crc32c"}),
               index_location="end", fill_value=0, before=(), after=(), **options):
        configuration = {"chunk_shape": list(chunks), "codecs": list(codecs), "index_codecs": list(index_codecs),
                         "index_location": index_location}
        metadata = ArrayMetadata(
            shape, dtype, shards, ChunkKeyEncoding("c", separator="/"),
            (*before, CodecSpec("sharding_indexed", configuration), *after), fill_value)
        return Array(lifecycle.create(store_of(place), "", ShardFormat, metadata, None, options_of(**options),
                                      overwrite=True))

    def open(place, **options):
        return Array(Binding(store_of(place), "", ShardFormat, options_of(**options)))

    return SimpleNamespace(create=create, open=open)
