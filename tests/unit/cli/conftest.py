"""What tests of the command line share: a folder of their own, and a run that has to fail."""
import os
import subprocess
import sys

import numpy as np
import pytest

import zcore
from zcore.__main__ import main


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def save():
    """Return a function that saves data to a .npy file here and returns its name."""
    def save(name, data):
        np.save(name, data)
        return name

    return save


@pytest.fixture
def refused(capsys):
    """Return a function that runs the demo, which has to fail, and returns its one line of complaint."""
    def refused(*arguments):
        assert main(["demo", *arguments]) == 1
        printed = capsys.readouterr()
        lines = printed.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("zcore demo: ") and printed.out == ""
        return lines[0].removeprefix("zcore demo: ")

    return refused


@pytest.fixture
def environment():
    """Return the environment of a command that runs this zcore, its output buffered as it is by default."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**kept, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture
def shell(environment):
    """Return a function that runs a line of a shell in which `zcore` is the command."""
    def shell(line):
        return subprocess.run(["sh", "-c", f'zcore() {{ "{sys.executable}" -m zcore "$@"; }}; {line}'], text=True,
                              capture_output=True, env=environment)

    return shell


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line in this process, and returns its exit code, output and complaints."""
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def weather():
    """Make the hierarchy `weather.zarr`: a group with a group, in which is an array of shards, and an array of chunks.

    Of the chunks the last row alone is stored.
    """
    top = zcore.create_group("weather.zarr", attributes={"title": "weather", "years": [2016, 2017]})
    t2m = top.create_array("2016/t2m", shape=(6, 4, 5), chunks=(2, 4, 5), shards=(4, 4, 5), dtype="<f4",
                           dimension_names=("time", "lat", "lon"), attributes={"units": "K"})
    t2m[:4] = np.arange(80, dtype="f4").reshape(4, 4, 5) / 10
    height = top.create_array("height", shape=(30, 20), chunks=(10, 10), dtype="<i2", fill_value=-1)
    height[20:] = np.arange(200).reshape(10, 20)
    return "weather.zarr"
