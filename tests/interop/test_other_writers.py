"""The first files of each other writer; `python -m tests.interop.other_writers` reads all of them."""
import importlib.util
import itertools
import warnings

import pytest

from tests.interop import other_writers


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in other_writers.WRITERS if name != "zarrita"])
def test_values_are_those_of_the_library_that_wrote_them(name, tmp_path):
    if importlib.util.find_spec(name) is None:     # imported, its HDF5 might disturb that of h5py
        pytest.skip(f"needs {name}")
    n = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = other_writers.WRITERS[name](str(tmp_path))
        for ways, path, expected in itertools.islice(files, 1 if name == "h5py" else 40):
            for way in ways:
                for label, verdict, reason in other_writers.judged(way, path, expected):
                    assert verdict in ("read same", "refused rightly"), (way, label, reason)
                    n += verdict == "read same"
    assert n > 30
