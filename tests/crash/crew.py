"""Processes that a test starts: each says when it is ready, waits for the word to go, and prints what it found."""
import contextlib
import json
import os
import select
import signal
import subprocess
import sys

# A process that hangs says where and ends, so the test that waits for it fails instead of hanging too.
MAX_SECONDS = 300

PRELUDE = f"""
import faulthandler, json, os, signal, sys, threading, time
faulthandler.dump_traceback_later({MAX_SECONDS}, exit=True)
# A process that a shell without job control has started in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import zcore
path, given = sys.argv[1], json.loads(sys.argv[2])
# Whose files the kernel opens, or whose bytes it is brought (tests/both_ways.py).
store = zcore.DirectoryStore(path, confined="CONFINED" in os.environ)
def ready(word="ready"):
    print(word, flush=True)
    if not sys.stdin.readline():
        os._exit(1)
"""


class Crew:
    """Processes of one test."""

    def __init__(self):
        self.processes = []

    def start(self, path, body, given=None, *, environment=None, python_options=()):
        """Start a process that runs `body`, with the names `path`, `store`, `given` (JSON) and `ready`."""
        variables = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), **(environment or {}))
        process = subprocess.Popen(
            [sys.executable, *python_options, "-c", PRELUDE + body, path, json.dumps(given)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
        self.processes.append(process)
        return process

    def go(self, processes):
        """Let the processes go on together when each of them has said that it is ready."""
        for process in processes:
            assert self.line(process) == "ready"
        for process in processes:
            self.tell(process)

    def line(self, process):
        """Return the next line that a process prints, without its end."""
        # Past the buffer of the stream, where a second line would be out of the sight of `select`.
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], MAX_SECONDS)
            assert readable, "the process says nothing"
            byte = os.read(process.stdout.fileno(), 1)
            assert byte, "the process has ended"
            line += byte
        return line[:-1].decode()

    def tell(self, process):
        """Let a process go on from where it said that it is ready."""
        process.stdin.write("go\n")
        process.stdin.flush()

    def results(self, processes):
        """Wait until all have ended well and return the JSON that each printed last."""
        texts = [process.communicate(timeout=MAX_SECONDS + 10)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * len(processes)
        return [json.loads(text.splitlines()[-1]) if text else None for text in texts]

    def kill(self):
        """End what is left."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
