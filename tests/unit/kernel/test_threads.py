"""Threads of the kernel: their stack is large enough where the C library gives little, as musl does."""
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

import zcore

KERNEL = Path(zcore.__file__).parent / "kernel"
# Touches 300 KB of the stack, as a function does whose locals lie there; not in the first thread, which has less.
PROGRAM = """
#include "threads.h"
static pthread_t first;
static int n_done;
static __attribute__((noinline)) void touch(void)
{
    volatile char used[300000];
    for (int i = sizeof used - 1; i >= 0; i -= 1000) used[i] = 1;
    __atomic_add_fetch(&n_done, used[sizeof used - 1], __ATOMIC_SEQ_CST);
}
static void work(void *context)
{
    (void)context;
    if (!pthread_equal(pthread_self(), first)) touch();
}
int main(void)
{
    first = pthread_self();
    zc_run_together(3, work, 0);
    return n_done;
}
"""


@pytest.mark.parametrize("name", ["cc", "musl-gcc"])
def test_the_stack_of_a_thread(tmp_path, name):
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"needs {name}")
    program = tmp_path / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", f"-I{KERNEL}", "-o", program, program.with_suffix(".c"),
                    "-pthread"], check=True)
    # glibc gives a thread as much as the process may have; musl gives 128 KB in any case.
    # A library that is preloaded for this process, as that of a sanitizer, is not for a program of another C library.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([program], env=environment,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 17,) * 2))
    assert done.returncode == 2
