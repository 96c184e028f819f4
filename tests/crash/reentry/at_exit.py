"""Every call at the end of the interpreter: ``at_exit KIND FORMAT CALL…``, whose last line says what was wrong."""
import atexit
import concurrent.futures
import concurrent.futures.thread
import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from random import Random

from tests.crash.races import verbs
from tests.crash.races.model import explains
from tests.crash.reentry.child import Places
from tests.crash.reentry.contexts import MAX_SECONDS, timed

# Its stores lie in a folder that the process which started this one removes.
RNG, PLACES = Random(1), Places("directory", "v3", os.environ.get("ZCORE_TEST_FOLDER"))


def run(inners):
    """Make each call once; return what was wrong."""
    found = []
    for inner in inners:
        try:
            store = PLACES.next()
            before = verbs.begin(store, PLACES.format, inner != "create")
            call = timed(store, PLACES.task(inner, 1, RNG))
            assert explains(before, [call], verbs.found(store)), call
            verbs.remains(store, PLACES.format)
        except BaseException:
            found.append(f"{inner}: {traceback.format_exc()}")
    return found


def tell(inners):
    found = run(inners)
    os.write(1, (json.dumps([len(inners), found]) + "\n").encode())


def at_exit(inners):
    atexit.register(tell, inners)


def in_a_thread(inners):
    """A thread that goes on when the main one has ended."""
    def work():
        threading.main_thread().join()
        tell(inners)

    threading.Thread(target=work).start()


def in_an_executor(inners):
    """A task that an executor still has when the main thread has ended."""
    def work():
        # Set when the interpreter begins to wait for the tasks of all executors.
        while not concurrent.futures.thread._shutdown:
            time.sleep(0.001)
        tell(inners)

    concurrent.futures.ThreadPoolExecutor(1).submit(work)


def in_a_daemon(inners):
    """A thread that is cut off in the middle of a call. The interpreter ends, and what is left is whole."""
    begun = threading.Event()

    def work():
        while True:
            assert not run(inners)
            begun.set()

    threading.Thread(target=work, daemon=True).start()
    begun.wait(MAX_SECONDS)
    os.write(1, (json.dumps([len(inners), []]) + "\n").encode())


class Ending:
    def __init__(self, inners):
        self.calls = []
        for inner in inners:
            store = PLACES.next()
            verbs.begin(store, PLACES.format, inner != "create")
            self.calls.append((store, PLACES.task(inner, 1, RNG)))

    def __del__(self, timed=timed, write=os.write, dumps=json.dumps):
        outcomes = []
        for call in self.calls:
            try:
                outcomes.append(str(timed(*call).outcome))
            except Exception as error:
                outcomes.append(str(error))
        # Python imports nothing any more, and says so; nor has it `open`.
        reasons = ("Python is likely shutting down", "name 'open' is not defined")
        found = [outcome for outcome in outcomes if not outcome.startswith("('ok',")
                 and not any(reason in outcome.replace("\\", "") for reason in reasons)]
        write(1, (dumps([len(outcomes), found]) + "\n").encode())


def in_a_finalizer(inners):
    """The end of a global object, after everything else."""
    sys.modules[__name__].ending = Ending(inners)


KINDS = {"atexit": at_exit, "thread": in_a_thread, "executor": in_an_executor, "daemon": in_a_daemon,
         "finalizer": in_a_finalizer}

if __name__ == "__main__":
    faulthandler.dump_traceback_later(2 * MAX_SECONDS, exit=True)
    # What is imported at the first use cannot be imported at the end.
    PLACES.format = sys.argv[2]
    assert not run(sys.argv[3:])
    PLACES.keeps = True
    KINDS[sys.argv[1]](sys.argv[3:])
