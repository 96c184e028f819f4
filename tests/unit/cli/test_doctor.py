"""`zcore doctor`: the installed extras, the trial of a folder, and the extras that a file needs."""
import json
import tomllib
from pathlib import Path

import numpy as np

import zcore
from zcore.cli.verbs.doctor import EXTRAS


def declared():
    """Return the extras of `pyproject.toml` that bring a feature, each with its packages."""
    root = Path(__file__).resolve().parents[3]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {name: packages for name, packages in extras.items() if name not in ("test", "bench", "demo", "docs")}


def test_all_extras_are_known():
    assert set(EXTRAS) == set(declared())


def test_what_is_installed(run):
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert f"zcore: {zcore.__version__}" in out and "lock on" in out
    assert all([f"extra {name}:" in out for name in EXTRAS])


def test_an_extra_that_is_missing(run, monkeypatch):
    monkeypatch.setitem(EXTRAS, "remote", (("no_such_module",), "URLs"))
    code, out, err = run("doctor")
    assert code == 0 and "An extra that is absent is no fault" in out
    assert ("absent  extra remote: no_such_module not installed; for URLs "
            '(python -m pip install "zcore-array[remote]")\n' in out)


def test_an_absent_extra_is_named_and_how_to_get_it(run, monkeypatch):
    """As in the errors of calls that need it. It is absent if a package is that `pyproject.toml` declares."""
    from zcore.cli.verbs import doctor

    monkeypatch.setattr(doctor, "_is_there", lambda module: False)
    rows = json.loads(run("doctor", "--json")[1])["installed"]
    found = {row["name"].removeprefix("extra "): row["what"] for row in rows if row["state"] == "absent"}
    for extra, packages in declared().items():
        assert [doctor.PACKAGES.get(module, module).strip("'") for module in EXTRAS[extra][0]] == [
            package.partition(">")[0] for package in packages]
        assert found[extra].endswith(f' (python -m pip install "zcore-array[{extra}]")')


def test_a_folder(run, tmp_path):
    code, out, err = run("doctor", str(tmp_path))
    assert (code, err) == (0, "") and "locks of ranges: hold among the processes of this host" in out
    code, out, _ = run("doctor", "--json", str(tmp_path))
    found = json.loads(out)
    assert code == 0 and {"name": "fsync", "state": "ok"}.items() <= found[f"folder {tmp_path}"][4].items()


def test_what_a_hierarchy_needs(run, weather):
    assert run("doctor", weather)[0] == 0
    zcore.create_array(f"{weather}/other", data=np.arange(3))
    path = Path(weather) / "other" / "zarr.json"
    document = json.loads(path.read_text())
    document["codecs"].append({"name": "numcodecs.none_such", "configuration": {}})
    path.write_text(json.dumps(document))
    code, out, _ = run("doctor", weather)
    assert code == 1 and "missing other" in out and "none_such" in out
    code, out, _ = run("doctor", f"{weather}/other")
    assert code == 1 and "none_such" in out


def test_what_it_cannot_look_at(run, tmp_path):
    for arguments in (("doctor", str(tmp_path / "none")), ("doctor", "--meet"),
                      ("doctor", "--meet", "--seconds", "0.1", str(tmp_path))):
        code, out, err = run(*arguments)
        assert code == 1 and err.count("zcore doctor: ") == 1, arguments
