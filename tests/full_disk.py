"""A script that runs in a process of its own, on a small file system in memory that gets full.

The file system is mounted where that process alone sees it, and goes with it.
"""
import functools
import os
import subprocess
import sys
import tempfile

import pytest

_MOUNT = 'mount -t tmpfs -o size="$1"k none "$2" && cd "$2" && shift 2 && exec "$@"'
# Whoever is not root is root in a namespace of users, where the system allows that.
_NAMESPACES = ("--mount",), ("--mount", "--map-root-user")

# Put before each script: leave so many bytes free, so that one process can try many sizes.
_PRELUDE = """
import os

def leave_free(n_bytes):
    if os.path.exists(".filler"):
        os.unlink(".filler")
    status = os.statvfs(".")
    n_filled = status.f_bavail * status.f_frsize - n_bytes
    if n_filled > 0:
        with open(".filler", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, n_filled)
"""


def run_on_tmpfs(script, *arguments, kilobytes, timeout=120):
    """Run Python code in an empty tmpfs of this size, its current directory; skip the test where none can be mounted.

    The code may call ``leave_free(n_bytes)``, which fills the disk with a file ``.filler``.

    Returns
    -------
    CompletedProcess
        With text; a process that was killed by a signal has its negative number as `returncode`.
    """
    namespace = _namespace()
    if namespace is None:
        pytest.skip("no file system can be mounted here: neither root, nor a namespace of users")
    return _run(namespace, script, arguments, kilobytes, timeout)


@functools.cache
def _namespace():
    for namespace in _NAMESPACES:
        try:
            if _run(namespace, "print(1)", (), 64, 60).stdout == "1\n":
                return namespace
        except FileNotFoundError:
            pass
    return None


def _run(namespace, script, arguments, kilobytes, timeout):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            ["unshare", *namespace, "sh", "-c", _MOUNT, "sh", str(kilobytes), folder, sys.executable, "-c",
             _PRELUDE + script, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True,
            timeout=timeout)
