"""How many functions of zcore, written in Python, the calls take that programs make in loops."""
import os
import sys

import numpy as np
import pytest

import zcore

ROOT = os.path.dirname(zcore.__file__)
# A comprehension is a call in some versions of Python.
LIMITS = {"open": 49, "read": 32, "read again": 1, "write": 30, "append": 72, "create": 82, "create in a group": 90,
          "create by a group": 79}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return functions to count, by name."""
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -(1 << 62))

    def options(name):
        return {"store": tmp_path / name, "shape": (20, 20), "chunks": (10, 10), "dtype": "f4"}

    group = zcore.create_group(tmp_path / "g")
    for i in range(2):
        group.create_array(f"d{i}", shape=(20 + i, 20), chunks=(10, 10 + i), dtype="f4", attributes={"i": i})
        zcore.create_array(**options(f"a{i}"))[...] = 1
        zcore.create_array(**options("g"), name=f"b{i}")
    array, opened = (zcore.open(tmp_path / f"a{i}", "r+") for i in range(2))
    array[:2, :2] = 5
    array.append(np.ones((3, 20), "f4"))
    for _ in range(2):
        array[:2, :2]
    return {
        "open": lambda: zcore.open(tmp_path / "a1", "r+"),
        "read": lambda: opened[:2, :2],
        "read again": lambda: array[:2, :2],
        "write": lambda: array.__setitem__(np.s_[:2, :2], 5),
        "append": lambda: array.append(np.ones((3, 20), "f4")),
        "create": lambda: zcore.create_array(**options("c")),
        "create in a group": lambda: zcore.create_array(**options("g"), name="c"),
        "create by a group": lambda: group.create_array("e", shape=(7, 9), chunks=(3, 4), dtype="f4",
                                                        attributes={"i": 5}),
    }


@pytest.mark.parametrize("name", LIMITS)
def test_calls(calls, name):
    called = []

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            called.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        calls[name]()
    finally:
        sys.setprofile(before)
    assert len(called) <= LIMITS[name], called
