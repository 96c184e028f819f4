"""Metadata documents of two libraries, compared by what they say."""
import importlib.util
import json

import numpy as np

# Members that may be left out, and what they then mean.
_LEFT_OUT = {"storage_transformers": [], "dimension_separator": ".", "attributes": {}, "configuration": {},
             "index_location": "end", "consolidated_metadata": None}


def is_installed(module):
    return importlib.util.find_spec(module) is not None


def document_of(place, format):
    """Return the metadata document of an array, Zarr v2's attributes apart."""
    return json.loads((place / ("zarr.json" if format == 3 else ".zarray")).read_text("utf-8"))


def meaning(value):
    """Return a document, or a part of one, without members that say what leaving them out says."""
    if isinstance(value, list):
        return [meaning(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: meaning(one) for key, one in value.items()}
    if found.get("name") == "default" and found.get("configuration") == {"separator": "/"}:
        found["configuration"] = {}
    if not any(found.get("dimension_names") or ()):
        found.pop("dimension_names", None)
    if found.get("data_type") in ("float32", "complex64"):
        found["fill_value"] = _rounded(found["fill_value"])
    return {key: one for key, one in found.items() if key not in _LEFT_OUT or one != _LEFT_OUT[key]}


def _rounded(value):
    """Return a number as its 32 bits have it: 0.1 and 0.10000000149011612 are one float32."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(np.float32(value)) if isinstance(value, (int, float)) else value


def assert_same(ours, theirs):
    """Assert that two arrays have documents of one meaning, member by member."""
    format = 3 if (ours / "zarr.json").exists() else 2
    ours, theirs = (meaning(document_of(place, format)) for place in (ours, theirs))
    if format == 3 and "attributes" not in theirs:
        ours.pop("attributes")  # tensorstore does not keep them
    assert ours.keys() == theirs.keys()
    for member, value in ours.items():
        assert theirs[member] == value, member


def consolidated(place, format):
    """Return path -> document of the copy that a group has of the documents below it, empty ones left out."""
    if format == 3:
        copy = json.loads((place / "zarr.json").read_text("utf-8"))["consolidated_metadata"]["metadata"]
    else:
        copy = json.loads((place / ".zmetadata").read_text("utf-8"))["metadata"]
        for document in copy.values():
            document.pop("consolidated_metadata", None)  # zarr-python puts Zarr v3's there, too, and leaves it empty
    return {path: meaning(document) for path, document in copy.items() if document}
