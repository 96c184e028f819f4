"""Measured comparison of zcore with the libraries that read and write the same arrays.

``python -m benchmarks run`` measures and writes a JSON file, ``python -m benchmarks report`` makes Markdown or one HTML
page of such files. The other commands measure one area each; ``python -m benchmarks --help`` lists them.

| folder | holds |
|---|---|
| `suites` | the workloads, as data |
| `adapters` | one file for each library |
| `harness` | how a workload is run: time, memory, machine, the bare loop in C |
| `inputs` | the arrays, files and servers that are read |
| `report` | tables, plots, the page |
| `comparisons` | measurements of one area |
| `counts` | instructions and lines of code |
| `results` | JSON files of former runs, and the page of the newest ones |

The rules of the comparison:

- All libraries run in one process and read the same files. They take turns in a random order. The page cache is warm.
- Fixtures are written by codecs and a JSON writer of their own (`inputs`), not by a library under test. The chunk files
  of `__zmeta__` and of Zarr v2 can be the same files through hard links: zcore then reads the first, the others the
  second. An array to be written has the same metadata document for all.
- Every result is compared with the source data after the clock has stopped. A library with a wrong answer has no time.
- Every library makes its result array within the measured time, has the same number of threads, the same codec, and the
  settings that its documentation recommends. Its adapter names them.
- The bare loop (`harness/bare_loop.c`) is the limit: the same work in C without any generality. zcore does not use it.
"""
