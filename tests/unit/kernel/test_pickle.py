"""Which classes of the kernel are pickled: those that say how."""
import importlib
import pickle
import pkgutil

import pytest

import zcore.kernel


def classes():
    for found in pkgutil.walk_packages(zcore.kernel.__path__, "zcore.kernel."):
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, type) and value.__module__ == found.name:
                yield value


def test_a_class_that_does_not_say_how_it_is_pickled_refuses():
    """Python refuses, as these have fields that it cannot see; Cython's own methods are not generated."""
    refused = []
    for kind in classes():
        if kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
            try:
                value = kind.__new__(kind)
            except TypeError:     # it needs arguments
                continue
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with pytest.raises(TypeError, match="cannot pickle"):
                    pickle.dumps(value, protocol)
            refused.append(kind.__name__)
    assert {"Plan", "ShardWriter"} <= set(refused)
