"""After every change of a hierarchy, its consolidated metadata, if any are left, show the nodes that exist."""
import numpy as np
import pytest

import zcore

CHANGES = {
    "create": lambda root, store: root.create_array("g/new", data=[1]),
    "create empty": lambda root, store: root.create_array("g/new", shape=3, dtype="i4"),
    "create groups": lambda root, store: root.create_array("g/x/y/z", shape=3, dtype="i4"),
    "create in another format": lambda root, store: zcore.create_array(
        store, name="g/new", shape=3, dtype="i4", zarr_format=5 - root.zarr_format),
    "create in zmeta": lambda root, store: zcore.create_array(
        store, name="g/new", shape=3, dtype="i4", zarr_format="zmeta"),
    "require": lambda root, store: root.require_group("g/new"),
    "assign": lambda root, store: root.__setitem__("g/a", np.zeros(5)),
    "overwrite": lambda root, store: root.create_array("g/a", data=np.zeros(5), overwrite=True),
    "overwrite empty": lambda root, store: root.create_array("g/a", shape=5, dtype="i2", overwrite=True),
    "overwrite an array by a group": lambda root, store: root.create_group("g/a", overwrite=True),
    "overwrite a group": lambda root, store: root.create_group("g", overwrite=True),
    "overwrite a group by an array": lambda root, store: root.create_array("g", data=[1], overwrite=True),
    "overwrite all": lambda root, store: zcore.open_group(store, "w", zarr_format=root.zarr_format),
    "overwrite an array by another format": lambda root, store: zcore.create_array(
        store, name="g/a", data=[1], overwrite=True, zarr_format=5 - root.zarr_format),
    "overwrite a group by another format": lambda root, store: zcore.create_group(
        store, path="g", overwrite=True, zarr_format=5 - root.zarr_format),
    "delete": lambda root, store: root.__delitem__("g/a"),
    "delete a group": lambda root, store: root.__delitem__("g"),
    "delete and create": lambda root, store: (root.__delitem__("g"), root.create_group("g")),
    "move": lambda root, store: root.move("g/a", "g/b"),
    "move out": lambda root, store: root.move("g/a", "b"),
    "move in": lambda root, store: root.move("top", "g/top"),
    "move a group": lambda root, store: root.move("g", "h"),
    "resize": lambda root, store: root["g/a"].resize(99),
    "append": lambda root, store: root["g/sub/c"].append([1, 2]),
    "attributes": lambda root, store: root["g/a"].attrs.update(k=1),
    "attributes of a group": lambda root, store: root["g"].attrs.clear(),
    "attributes of all": lambda root, store: root.attrs.update(k=1),
    "copy": lambda root, store: zcore.copy(store, store, path="top", destination_path="g/new"),
    "copy over": lambda root, store: zcore.copy(store, store, path="top", destination_path="g/a", overwrite=True),
    "copy over a group": lambda root, store: zcore.copy(
        store, store, path="g/sub", destination_path="g", overwrite=True),
    "save over": lambda root, store: zcore.save(
        store, a=[1], path="g/sub", zarr_format=root.zarr_format, overwrite=True),
    "make": lambda root, store: zcore.create_hierarchy(store=store, nodes={"g/h/i": root["top"].metadata}),
}


def seen(store, path, use_consolidated):
    """Return the attributes of the group at a path, and all nodes below it; None if there is no group."""
    try:
        group = zcore.open_group(store, path=path, use_consolidated=use_consolidated)
    except zcore.NodeNotFoundError:
        return None
    members = {path: (node.attrs.asdict(), node.zarr_format, getattr(node, "shape", None))
               for path, node in group.members(None)}
    return group.attrs.asdict(), members


@pytest.mark.thinned(5, "change", "paths", "zarr_format", "place")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("paths", [("g", ""), ("",), ("g",)])
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("place", ["directory", "memory"])
def test_copies_agree_with_the_documents(place, zarr_format, paths, change, tmp_path):
    store = zcore.DirectoryStore(tmp_path) if place == "directory" else zcore.MemoryStore()
    root = zcore.create_group(store, zarr_format=zarr_format, attributes={"root": 1})
    for name in ("top", "g/a", "g/sub/c"):
        root.create_array(name, data=np.arange(4), chunks=2, attributes={"name": name})
    for path in paths:
        zcore.consolidate_metadata(store, path=path)
    CHANGES[change](zcore.open_group(store, "r+"), store)
    for path in ("", "g", "h", "g/sub"):
        assert seen(store, path, None) == seen(store, path, False)
