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

    class Service:
        def get(self, name):
            return b"value"

    Service.get_range = lambda self, name, start, length: b"value"[start:start + length]

    array = b'{"zarr_format": 2, "shape": [1], "chunks": [1]}'
    memory = MemoryStore({".zmetadata": b'{"metadata": {"x/.zarray": ' + array + b'}, "record_size": 1}'})
    table = ParquetTable(memory)
    written = ReferenceStore({"x": "text"}, read_only=False)
    remote = ReferenceStore({"x": ["s3://bucket/a", 0, 5]}, services={"s3://": Service()})
    owners = {"memory": (memory, lambda: memory.set("a", b"")), "parquet": (table, lambda: table.find(b"x/0")),
              "written": (written, lambda: written.get("x")),
              "remote": (remote.targets.remote, lambda: remote.get("x"))}
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
@pytest.mark.parametrize("name", ["memory", "parquet", "written", "remote"])
def test_a_lock_of_the_parent_is_not_held_in_the_child(name):
    script = textwrap.dedent(SCRIPT).replace("NAME", repr(name))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
