"""Examples of the pages that are no sessions: they run, on the files that they name."""
import re
from pathlib import Path

import numpy as np
import pytest

import zcore

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Run elsewhere: extending.md by test_extending.py and formats/test_base.py, kernel.md (a setup.py) by test_build.py.
# remote.md names services of other hosts; tests/unit/stores/remote has its calls with a server of its own.
ELSEWHERE = {"extending.md", "kernel.md", "remote.md"}


def examples(page):
    """Return the blocks of a page that are no sessions."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for text in found if ">>> " not in text]


def make_asdf():
    pass                                        # the page makes its files itself


def make_references():
    import h5py

    array = zcore.create_array("made.zarr", name="t2m", data=np.arange(12.0).reshape(3, 4), chunks=(1, 4))
    with h5py.File("forecast.nc", "w") as file:
        file["t2m"] = array[:]
    zcore.references("made.zarr").save("forecast.json")
    Path("forecast.parq").mkdir()
    Path("forecast.parq", ".zmetadata").write_text('{"record_size": 10, "metadata": {".zgroup": {"zarr_format": 2}}}')


def make_tools():
    import h5py

    zcore.create_array("old", data=np.arange(6))
    zcore.create_array("rows.zarr", shape=(16384, 4), chunks=(4, 4), dtype="u1")
    zcore.create_array("a.zarr", data=np.arange(60.0), chunks=(10,))
    zcore.create_array("h.zarr", name="t2m", data=np.ones((4, 6)), chunks=(2, 3))
    Path("h.zarr/t2m/c/1/1").write_bytes(b"damaged")
    with h5py.File("a.h5", "w") as file:
        file["x"] = np.arange(3)


def make_zip():
    zcore.create_array("image.zarr", name="0", data=np.ones((4, 6)), chunks=(2, 3))


PREPARED = {"asdf.md": make_asdf, "references.md": make_references, "tools.md": make_tools, "zip.md": make_zip}


@pytest.mark.parametrize("name", sorted(PREPARED))
def test_they_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PREPARED[name]()
    names = {"zcore": zcore, "numpy": np, "np": np}
    for text in examples(DOCS / name):
        exec(compile(text, name, "exec"), names)


def test_every_page_with_examples_is_run():
    pages = {page.name for page in DOCS.rglob("*.md") if examples(page)}
    assert pages == set(PREPARED) | ELSEWHERE
