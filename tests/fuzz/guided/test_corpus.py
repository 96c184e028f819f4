"""Each input of the corpus goes through its target, without clang and atheris: each former finding stays a test."""
import importlib.util
import sysconfig

import pytest

from tests.each import each

pytest.importorskip("jinja2")
pytest.importorskip("pyarrow")
pytest.importorskip("yaml")

from tests.fuzz import run  # noqa: E402
from tests.fuzz.guided import builds, corpus, targets  # noqa: E402


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The targets that call the kernel."""
    folder = tmp_path_factory.mktemp("native")
    builds.built_plainly(folder)
    spec = importlib.util.spec_from_file_location("native", folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def replay(function, target):
    inputs = corpus.inputs_of(target)
    assert inputs
    for name, data in inputs.items():
        try:
            function(target, data)
        except Exception as exc:
            exc.add_note(f"member {name} of {target}.zip: {data[:200]!r}")
            raise


@pytest.mark.parametrize("target", run.NATIVE)
def test_the_kernel(native, target):
    """BL-HDR-05, V3-SHARD-09, RF-DOC-01: a right answer, or an error of zcore."""
    replay(native.run, target)


@each("target", run.IN_PYTHON)
def test_readers(target):
    """A right answer, or an error of zcore."""
    replay(targets.run, target)


def test_a_target_that_fails_is_seen(native, monkeypatch):
    """The replay itself: an exception of another kind names the input."""
    monkeypatch.setitem(targets.TARGETS, "strict_json", lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        replay(targets.run, "strict_json")
    assert caught.value.__notes__[0].startswith("member ")
    with pytest.raises(KeyError):
        native.run("none", b"")


def test_every_target_has_a_corpus():
    assert set(targets.TARGETS) == set(run.IN_PYTHON)
    assert {path.stem for path in corpus.FOLDER.iterdir()} == {*run.NATIVE, *run.IN_PYTHON}
    assert sum(path.stat().st_size for path in corpus.FOLDER.iterdir()) < 400_000
