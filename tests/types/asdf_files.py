"""ASDF files."""
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import zcore
from zcore import asdf


def main(folder: Path) -> None:
    path = folder / "a.asdf"
    asdf.write(path, {"title": "squares", "x": np.arange(5) ** 2, "y": asdf.Inline([1, 2])}, compression="zlib")
    with asdf.open(path, "rw") as file:
        assert_type(file, asdf.AsdfFile)
        assert_type(file.tree, dict[str, Any])
        assert_type(file.blocks[0], asdf.Block)
        assert_type(file.blocks[0].read(), memoryview)
        assert file.blocks[0].compression == "zlib" and file.standard
        node = file.arrays[0]
        assert_type(node.read(), npt.NDArray[Any])
        assert node.shape == (5,)
        file.tree["title"] = "numbers"
        assert_type(file.update(), bool)
    with asdf.stream(folder / "rows.asdf", {"rows": asdf.Stream((3,), "<i2")}) as rows:
        rows.append([[1, 2, 3]])
        assert rows.n_rows == 1
    assert asdf.explode(path)[0].endswith("a_exploded.asdf")
    store = zcore.AsdfStore(path)
    squares = zcore.open_group(store)["x"]
    assert isinstance(squares, zcore.Array) and int(squares[2]) == 4
