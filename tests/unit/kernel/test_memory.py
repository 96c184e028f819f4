"""Memory of a size that a file has named."""
import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

import zcore

KERNEL = Path(zcore.__file__).parent / "kernel"
PROGRAM = """
#include "memory.h"
int main(void)
{
    const int64_t sizes[][2] = {
        {PTRDIFF_MAX, 2}, {(int64_t)PTRDIFF_MAX / 8 + 1, 8}, {INT64_MAX, INT64_MAX}, {-1, 1}, {INT64_MIN, 8},
        {(int64_t)1 << 32, (int64_t)1 << 32}, {((int64_t)1 << 61) + 1, 8}, {(int64_t)PTRDIFF_MAX / 4 + 9, 8}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (zc_new(sizes[i][0], sizes[i][1]) || zc_new_zeros(sizes[i][0], sizes[i][1])
            || zc_resized(0, sizes[i][0], sizes[i][1])) return 1 + i;
    return zc_new(3, 8) && zc_new_zeros(3, 8) && zc_resized(0, 3, 8) ? 0 : 100;
}
"""


def test_what_no_object_can_have_is_refused(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    subprocess.run([compiler, "-std=c11", f"-I{KERNEL}", "-o", program, program.with_suffix(".c")], check=True)
    subprocess.run([program], check=True)


def test_a_chunk_that_would_fit_if_32_bits_counted_its_bytes(tmp_path):
    """With what a buffer has in reserve, it takes 2**32 bytes and 2 MB."""
    zcore.create_array(tmp_path, shape=3_435_974_000, chunks=3_435_974_000, dtype="u1", compressors="gzip")
    (tmp_path / "c").mkdir(exist_ok=True)
    (tmp_path / "c" / "0").write_bytes(gzip.compress(bytes(3_200_000)))
    with pytest.raises(zcore.ChunkError):
        zcore.open(tmp_path)[5]
