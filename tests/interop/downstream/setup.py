"""The build of an extension that cimports the private headers of zcore."""
from Cython.Build import cythonize
from setuptools import setup

import zcore

setup(
    name="chunk-reader",
    py_modules=[],
    ext_modules=cythonize(["chunk_reader.pyx", "masking.pyx"], include_path=[zcore.get_include()]),
)
