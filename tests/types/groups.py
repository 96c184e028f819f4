"""Groups, attributes, and the tools for whole stores."""
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import zcore
from zcore.storage import StoreLike


def titles(store: StoreLike) -> dict[str, str]:
    group = zcore.open_group(store)
    return {name: str(node.attrs.get("title", "")) for name, node in group.members(None)}


def main(folder: Path) -> None:
    place = folder / "g.zarr"
    group = zcore.open_group(place, "w", attributes={"title": "weather"})
    assert_type(group, zcore.Group)
    array = group.create_array("2016/temperature", shape=(4, 6), chunks=(2, 3), dtype="f4", attributes={"title": "t"})
    assert_type(array, zcore.Array)
    assert_type(group["2016"], zcore.Array | zcore.Group)
    assert_type(group.get("2017"), zcore.Array | zcore.Group | None)
    assert_type(group.require_group("2017"), zcore.Group)
    assert_type(group.require_array("2017/rain", shape=3, dtype="f8", chunks=2), zcore.Array)
    assert_type(group.zeros("2017/snow", (3, 3), dtype="i2", compressors=None), zcore.Array)
    group["2017/wind"] = np.arange(5)
    for name, member in group.arrays():
        assert_type(name, str)
        assert_type(member, zcore.Array)
    for _, node in group.walk():
        if isinstance(node, zcore.ZcoreError):
            raise node
        assert_type(node, zcore.Array | zcore.Group)
    assert titles(place)["2016/temperature"] == "t"

    attributes = group.attrs
    assert_type(attributes["title"], Any)
    attributes["title"] = "climate"
    attributes.update({"a": 1}, b=[1, 2])
    assert_type(attributes.asdict(), dict[str, Any])
    assert group.update_attributes({"c": None}) is group
    assert_type(group.update_attributes({"c": None}), zcore.Group)

    zcore.consolidate_metadata(place)
    assert_type(zcore.open_consolidated(place), zcore.Group)
    copied = zcore.copy(place, folder / "copy.zarr", chunks=(4, 6), path="2016/temperature", memory="10 MB")
    assert_type(copied, zcore.Array | zcore.Group | None)
    report = zcore.verify(place, progress=lambda done, total: None)
    assert report.ok and report.n_arrays == 4
    assert [problem.key for problem in report.problems] == []
    references = zcore.references(place, path="2016/temperature", inline_threshold=100)
    assert_type(references, zcore.ReferenceStore)
    with zcore.open(folder / "g.zip", "w", shape=3, dtype="i4") as archived:
        assert_type(archived, zcore.Array)
        archived[:] = 1
    with zcore.ZipStore(folder / "g.zip") as store:
        assert_type(store, zcore.ZipStore)
        assert_type(store.get("zarr.json", (0, 1)), bytes | None)
