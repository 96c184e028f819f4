"""A power cut at any moment leaves what was there before a change, or what the change makes."""
import contextlib
import importlib
import os
import pickle

import numpy as np
import pytest

from tests.crash.power import disk
from tests.crash.power.verbs import NEW, VERBS

SECONDS = 2.5     # in which names reach the disk; data would only after 30


def found_in(verb, system, image):
    """Return what a verb's `look` finds in an image, or the text of its error."""
    def look(folder):
        try:
            found = verb.look(folder)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as file:
            pickle.dump(found, file)

    reading, writing = os.pipe()
    answer = bytearray()
    with disk.mounted(system, image) as folder, os.fdopen(reading, "rb") as file:
        disk.in_child(look, folder, lambda: os.close(writing), lambda: answer.extend(file.read()))
    return pickle.loads(answer)


def is_between(found, old, new):
    """Whether everything is the old or the new one, and each element of an array is."""
    if isinstance(found, dict) and found.keys() == old.keys() == new.keys():
        return all(is_between(found[name], old[name], new[name]) for name in found)
    if isinstance(found, tuple) and len(found) == len(old) == len(new):
        return all(is_between(*parts) for parts in zip(found, old, new, strict=True))
    if isinstance(found, bytes) and len(found) == len(old) == len(new):
        parts = [np.frombuffer(value, "f8") for value in (found, old, new)]
        return bool(((parts[0] == parts[1]) | (parts[0] == parts[2])).all())
    return found in (old, new)


def check(system, verb, fsync, n_reordered, step=1, data_too=False):
    """Cut the power at each `step`-th write of a verb's deed, and look."""
    with disk.recorded(system, verb.before, lambda folder: verb.deed(folder, fsync), SECONDS, data_too) as record:
        images = disk.images(record, 1, n_reordered, step)
        seen = [(found_in(verb, system, image), is_done, cut) for image, is_done, cut in images]
    (old, *_), (new, *_) = seen[0], seen[-1]
    assert not isinstance(old, str) and not isinstance(new, str), (old, new)
    assert old != new
    for found, is_done, cut in seen:
        if fsync and is_done:
            assert found == new, cut
        elif verb.has_parts:
            assert is_between(found, old, new), (cut, found)
        else:
            assert found in (old, new), (cut, found if isinstance(found, str) else "")


def needs(system):
    missing = disk.missing(system)
    if missing is not None:
        pytest.skip(missing)


@pytest.fixture(scope="module")
def imported():
    """Import once what each child would import again."""
    for name in ("h5py", "xarray"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def test_a_cut_after_an_overwrite():
    needs("ext4")
    check("ext4", VERBS["create_array over an array"], False, 0, step=4)


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("fsync", [False, True], ids=["default", "fsync"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("system", disk.SYSTEMS)
def test_the_old_or_the_new_one(system, verb, fsync):
    needs(system)
    check(system, VERBS[verb], fsync, 4)


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("system", disk.SYSTEMS)
def test_the_old_or_the_new_one_when_data_has_reached_the_disk_by_itself(system, verb):
    needs(system)
    check(system, VERBS[verb], False, 4, data_too=True)


@pytest.mark.slow
@pytest.mark.parametrize("verb", NEW)
@pytest.mark.parametrize("system", disk.SYSTEMS)
def test_what_is_new_is_there_with_fsync(system, verb):
    needs(system)
    check(system, NEW[verb], True, 4)
