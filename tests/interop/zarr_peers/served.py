"""A peer in a process of its own: requests come in by standard input, answers leave by standard output.

Peers start threads, set up what is global to a process, warn, and tensorstore ends a process that forks after it was
used; none of this may happen to the tests. Run as ``python served.py zarr|zarrs|tensorstore``.
"""
import os
import pickle
import sys

import numpy

SERIALIZERS = frozenset(("bytes", "vlen-utf8", "vlen-bytes", "sharding_indexed"))


def box_of(start, value):
    return tuple(slice(first, first + count) for first, count in zip(start, value.shape, strict=True))


class Zarr:
    """zarr-python, or the pipeline zarrs inside it, which then must not hand anything back to zarr-python's own."""

    def __init__(self, name):
        import zarr

        self.zarr = zarr
        self.version = zarr.__version__
        if name == "zarrs":
            zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True})

    def open(self, path, format):
        return self.zarr.open_array(path, mode="r+", zarr_format=format)

    def create(self, path, document):
        """Create an array from the members of a document, by the keywords that users have."""
        keywords = self._v3(document) if document["zarr_format"] == 3 else self._v2(document)
        dtype = self.zarr.dtype.parse_dtype(keywords["dtype"], zarr_format=document["zarr_format"])
        fill_value = document["fill_value"]
        if fill_value is not None:
            fill_value = dtype.from_json_scalar(fill_value, zarr_format=document["zarr_format"])
        self.zarr.create_array(path, shape=tuple(document["shape"]), zarr_format=document["zarr_format"],
                               **(keywords | {"dtype": dtype, "fill_value": fill_value}))

    @staticmethod
    def _v3(document):
        codecs = document["codecs"]
        i, = [i for i, codec in enumerate(codecs) if codec["name"] in SERIALIZERS]
        encoding = document["chunk_key_encoding"]
        return {"dtype": document["data_type"], "filters": codecs[:i], "serializer": codecs[i],
                "compressors": codecs[i + 1:], "attributes": document["attributes"],
                "chunks": tuple(document["chunk_grid"]["configuration"]["chunk_shape"]),
                "chunk_key_encoding": {"name": encoding["name"], **encoding["configuration"]},
                "dimension_names": document.get("dimension_names")}

    @staticmethod
    def _v2(document):
        import numcodecs

        dtype = document["dtype"]
        filters = [numcodecs.get_codec(config) for config in document["filters"] or ()]
        if dtype == "|O":
            dtype, filters = {"name": "|O", "object_codec_id": filters[0].codec_id}, filters
        elif isinstance(dtype, list):
            dtype = [tuple(field) for field in dtype]
        compressor = document["compressor"]
        return {"dtype": dtype, "filters": filters, "order": document["order"], "chunks": tuple(document["chunks"]),
                "compressors": None if compressor is None else numcodecs.get_codec(compressor),
                "chunk_key_encoding": {"name": "v2", "separator": document.get("dimension_separator", ".")}}

    def read(self, path, format):
        array = self.open(path, format)
        return numpy.asarray(array[...], array.dtype)  # without dimensions it is a scalar, which may lose its type

    def write(self, path, format, start, value):
        self.open(path, format)[box_of(start, value)] = value

    def resize(self, path, format, shape):
        self.open(path, format).resize(shape)

    def make_group(self, path, format, attributes, members):
        """Create a group; `members` maps paths to attributes of groups, or to elements of arrays."""
        root = self.zarr.create_group(path, zarr_format=format, attributes=attributes)
        for name, content in members.items():
            if isinstance(content, dict):
                root.create_group(name, attributes=content)
            else:
                root.create_array(name, data=content, attributes={"of": name})

    def describe_group(self, path, format, use_consolidated):
        """Return the attributes of a group, and path -> attributes and elements (None of a group) of its members."""
        root = self.zarr.open_group(path, mode="r", zarr_format=format, use_consolidated=use_consolidated)
        found = {name: (dict(node.attrs), node[...] if isinstance(node, self.zarr.Array) else None)
                 for name, node in root.members(max_depth=None)}
        return dict(root.attrs), found

    def consolidate(self, path, format):
        self.zarr.consolidate_metadata(path, zarr_format=format)

    def change_attributes(self, path, format, attributes):
        self.zarr.open(path, mode="r+", zarr_format=format).attrs.update(attributes)


class Tensorstore:
    """tensorstore's drivers `zarr` and `zarr3`; it has neither groups nor attributes of its own."""

    def __init__(self, name):
        import importlib.metadata

        import tensorstore

        self.tensorstore = tensorstore
        self.version = importlib.metadata.version(name)

    def open(self, path, format, **more):
        return self.tensorstore.open({"driver": "zarr3" if format == 3 else "zarr",
                                      "kvstore": {"driver": "file", "path": path}, **more}).result()

    def create(self, path, document):
        format = document["zarr_format"]
        document = {key: value for key, value in document.items() if key != "storage_transformers"}
        self.open(path, format, metadata=document, create=True)

    def read(self, path, format):
        return self.open(path, format).read().result()

    def write(self, path, format, start, value):
        self.open(path, format)[box_of(start, value)].write(value).result()

    def resize(self, path, format, shape):
        self.open(path, format).resize(inclusive_min=None, exclusive_max=shape).result()


def main(name):
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    peer = Tensorstore(name) if name == "tensorstore" else Zarr(name)
    pickle.dump((True, peer.version), answers)
    answers.flush()
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = True, getattr(peer, method)(*arguments)
        except Exception as error:  # whatever it is, the test is told
            answer = False, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
