"""icechunk, which keeps references as the chunks of a repository of its own, and zarr-python reading through it.

The repository is made of the reference set at first use, beside it. VirtualiZarr makes such repositories; what reads
them is this.
"""
import json
import os
import warnings

import icechunk
import zarr
from zarr.codecs.numcodecs import Zlib

from benchmarks.adapters import zarr_python
from benchmarks.inputs import reference_sets
from benchmarks.inputs.encodings import REFERENCES


class Adapter(zarr_python.Adapter):
    views = (REFERENCES,)
    distributions = ("icechunk", "zarr")

    def __init__(self, threads):
        super().__init__(threads, pipeline="batched")
        self.kinds = frozenset({"read", "parts"})

    def open(self, path, view):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # numcodecs' zlib is no codec of the specification
            return self._open(path)

    def _open(self, path):
        name = os.path.join(path, "icechunk")
        url = f"file://{os.path.abspath(path)}/"
        container = icechunk.VirtualChunkContainer(url, icechunk.local_filesystem_store(path))
        config = icechunk.RepositoryConfig.default()
        config.set_virtual_chunk_container(container)
        # None is what releases before 2.3 take.
        access = getattr(icechunk.credentials, "LocalFileSystemAccess", None)
        options = {"config": config, "authorize_virtual_chunk_access": {url: access}}
        storage = icechunk.local_filesystem_storage(name)
        if not os.path.exists(name):
            self._make(icechunk.Repository.create(storage, **options), path)
        session = icechunk.Repository.open(storage, **options).readonly_session("main")
        return zarr.open_array(session.store, path="a", mode="r", zarr_format=3)

    @staticmethod
    def _make(repository, path):
        with open(os.path.join(path, reference_sets.NAME), encoding="utf-8") as file:
            references = json.load(file)["refs"]
        document = json.loads(references.pop(".zarray"))
        session = repository.writable_session("main")
        zarr.create_array(session.store, name="a", shape=document["shape"], chunks=document["chunks"],
                          dtype=document["dtype"], fill_value=0.0,
                          compressors=[Zlib(level=document["compressor"]["level"])])
        session.store.set_virtual_refs("a", [
            icechunk.VirtualChunkSpec(list(map(int, key.split("."))), "file://" + url, offset, length)
            for key, (url, offset, length) in references.items()])
        session.commit("references")
