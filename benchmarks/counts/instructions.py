"""Instructions of the calls that people make most, counted by callgrind: they show on a noisy machine what got slower.

`ceilings.json` has what they took when it was written, for each version of Python; more than `MARGIN` times that is too
much. One process, one thread, warm caches; the kernel's system calls are not counted.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MARGIN = 1.1
CEILINGS = Path(__file__).with_name("ceilings.json")
_REPEATS, _WARM_UPS = 20, 12
_YOUNG = 2.1  # seconds, after which a file's identity is trusted


def measure():
    """Return {name of a call: instructions}.

    Raises : ImportError, if there is no valgrind, or nothing to compile its marks with.
    """
    if shutil.which("valgrind") is None:
        raise ImportError("valgrind is not installed")
    _marks()
    with tempfile.TemporaryDirectory() as top:
        environment = {**os.environ, "PYTHONHASHSEED": "0", "ZCORE_NUM_THREADS": "1"}
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={top}/out",
                   sys.executable, "-m", "benchmarks.counts.instructions", top]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        found = {}
        for path in Path(top).glob("out.*"):
            text = path.read_text("utf-8", "replace")
            name = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
            if name:
                total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
                found[name[1]] = int(total[1]) // _REPEATS
        return found


def ceilings():
    """Return {name: most instructions} for this version of Python, empty where none were written."""
    stored = json.loads(CEILINGS.read_text("utf-8")).get(_python(), {})
    return {name: int(count * MARGIN) for name, count in stored.items()}


def write(found):
    """Keep what was measured as what the ceilings are made of."""
    stored = json.loads(CEILINGS.read_text("utf-8")) if CEILINGS.exists() else {}
    CEILINGS.write_text(json.dumps(stored | {_python(): found}, indent=1, sort_keys=True) + "\n", "utf-8")


def render(found):
    """Return the counts as Markdown."""
    allowed = ceilings()
    lines = ["| call | instructions | ceiling |", "|---|---:|---:|"]
    lines += [f"| {name} | {count:,} | {allowed.get(name, 0):,} |" for name, count in sorted(found.items())]
    return "\n".join(lines)


def _python():
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _marks():
    import ctypes

    from benchmarks.harness import native

    return ctypes.CDLL(str(native.compiled(Path(__file__).with_name("callgrind_marks.c"))))


def _calls(top):
    import numpy as np

    import zcore
    from zcore import create_array, create_group, open_group

    small = create_array(f"{top}/small", shape=(64 * 4096,), chunks=(4096,), dtype="f4")
    small[...] = np.arange(64 * 4096) // 7
    large = create_array(f"{top}/large", shape=(1024, 1024), chunks=(256, 256), dtype="f4")
    large[...] = np.arange(2**20).reshape(1024, 1024) // 7
    growing = create_array(f"{top}/growing", shape=(0, 64, 64), chunks=(1, 64, 64), dtype="f4")
    group = create_group(f"{top}/group")
    for i in range(20):
        group.create_array(f"a{i}", shape=(10, 10), chunks=(5, 5), dtype="f4")
    values, frame = np.ones(10, "f4"), np.ones((1, 64, 64), "f4")
    return {
        "open": lambda: zcore.open(f"{top}/small"),
        "read 10 elements": lambda: small[5:15],
        "read 4 MB": lambda: large[...],
        "write 10 elements": functools.partial(small.__setitem__, slice(5, 15), values),
        "list 20 arrays": lambda: [(name, one.shape, one.dtype) for name, one in open_group(f"{top}/group").arrays()],
        "append 16 KB": lambda: growing.append(frame),
        "create": lambda: _create(group),
    }


def _create(group):
    group.create_array(f"b{len(_made)}", shape=(10, 10), chunks=(5, 5), dtype="f4")
    _made.append(None)


_made = []


def _count(top):
    import gc
    import time

    marks = _marks()
    calls = _calls(top)
    time.sleep(_YOUNG)
    gc.disable()
    for name, call in calls.items():
        for _ in range(_WARM_UPS):
            call()
        marks.start_counting()
        for _ in range(_REPEATS):
            call()
        marks.stop_counting(name.encode())


if __name__ == "__main__":
    _count(sys.argv[1])
