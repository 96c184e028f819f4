"""Measured comparison of zcore with the libraries that read and write the same arrays.

``python -m benchmarks run`` measures and leaves a JSON file, ``python -m benchmarks report`` makes Markdown of it,
``python -m benchmarks codecs`` reads and writes with codecs of other types than float32,
``python -m benchmarks kernels`` times the kernel's leaf functions alone, against ``memcpy``.

The rules of the comparison:

- Workloads are data (`workloads`), libraries are adapters (`adapters`). All of them run in one process, interleaved,
  on the same files, with the page cache warm; which library comes first changes from round to round.
- Fixtures are written by codecs and a JSON writer of their own (`encodings`, `fixtures`), not by a library under test.
  All libraries read the same files; where one set of chunk files is seen as `__zmeta__` and, through hard links, as
  Zarr v2, zcore reads the one and the others the other. Arrays to be written have the same metadata document.
- Every result is compared with the source data, after the clock has stopped; a library that answers wrongly has no
  time.
- Every library makes its own result array within the measured time, has the same number of threads, the same codec
  and the settings that its documentation recommends (said in its adapter).
- The bare loop (`bare_loop.c`) is the limit: the same work in C without any generality. It is no part of zcore.
"""
