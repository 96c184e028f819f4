"""Stores in a child that is forked while another thread of its parent holds their locks."""
import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import os, threading
    from zcore.stores.memory import MemoryStore
    from zcore.stores.reference.store import ReferenceStore
    from zcore.stores.reference.parquet import ParquetTable

    array = b'{"zarr_format": 2, "shape": [1], "chunks": [1]}'
    memory = MemoryStore({".zmetadata": b'{"metadata": {"x/.zarray": ' + array + b'}, "record_size": 1}'})
    table = ParquetTable(memory)
    written = ReferenceStore({"x": "text"}, read_only=False)
    owners = {"memory": (memory, lambda: memory.set("a", b"")), "parquet": (table, lambda: table.find(b"x/0")),
              "written": (written, lambda: written.set("x", b""))}
    owner, use = owners[NAME]
    held, done = threading.Event(), threading.Event()

    def hold():
        with owner._locks.whole() if NAME == "memory" else owner._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        use()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    done.set()
    thread.join()
    use()
    assert status == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", ["memory", "parquet", "written"])
def test_a_lock_of_the_parent_is_not_held_in_the_child(name):
    script = textwrap.dedent(SCRIPT).replace("NAME", repr(name))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
