"""The build of an extension that cimports the private headers of zcore."""
from pathlib import Path

from Cython.Build import cythonize
from setuptools import setup

import zcore

setup(
    name="chunk-reader",
    py_modules=[],
    ext_modules=cythonize(["chunk_reader.pyx", "masking.pyx"], include_path=[str(Path(zcore.__file__).parents[1])]),
)
