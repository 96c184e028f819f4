"""Build of the compiled kernel."""
import importlib.metadata
import os
from pathlib import Path

import Cython.Build
import numpy
from setuptools import Extension, setup


def blosc_files():
    dist = importlib.metadata.distribution("blosc")
    found = {}
    for file in dist.files or ():
        if file.name in ("blosc.h", "libblosc.a"):
            found[file.name] = Path(dist.locate_file(file)).resolve()
    return found


files = blosc_files()
flags = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", "-Wno-unused-function"]
extensions = []
for source in sorted(Path("zcore/kernel").glob("*.pyx")):
    name = ".".join(source.with_suffix("").parts)
    links = source.stem == "compress"
    extensions.append(Extension(
        name, [str(source)], extra_compile_args=flags,
        include_dirs=["zcore/kernel", numpy.get_include()] + ([str(files["blosc.h"].parent)] if links else []),
        extra_objects=[str(files["libblosc.a"])] if links else [],
        extra_link_args=["-Wl,--exclude-libs,ALL", "-lpthread"] if links else [],
    ))
setup(ext_modules=Cython.Build.cythonize(extensions, build_dir="build/cython", nthreads=0))
