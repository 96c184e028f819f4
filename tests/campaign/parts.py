"""The parts: add one as one entry. The contract of their commands is on the first page (`__init__.py`)."""
from collections import namedtuple

from tests.fuzz.run import IN_PYTHON, NATIVE

# `what` continues the sentence "what was tried: …".
Part = namedtuple("Part", ("name", "what", "command"))

TARGETS = (*NATIVE, *IN_PYTHON)      # of fuzzing
NODES = ("python", "-m", "tests.campaign.nodes")

PARTS = (
    Part("failing calls", "each call of the system fails once, in each of 14 ways, in every verb that writes: then the "
         "old or the new state is there, another process reads it, the same handle works again, nothing is left",
         ("python", "-m", "tests.crash.failing")),
    Part("failing requests", "each request to a service fails once, or is carried out and its answer is lost, in every "
         "verb that writes to a service",
         ("python", "-m", "tests.crash.failing.service")),
    Part("simulated service", "random calls of one to eight writers at a simulated service, whose requests wait, fail, "
         "lose their answers, come late or are repeated: every history keeps the promises of docs/remote.md",
         ("python", "-m", "tests.simulated")),
    Part("no memory", "each request of the compiled code for memory fails once, for each compressor and filter",
         (*NODES, "--unit", "requests", "tests/crash/test_failing_calls.py::test_memory_that_is_not_there")),
    Part("full disk", "every verb that writes, on a disk with no free page, one, two, until there is room",
         (*NODES, "--unit", "full disks", "tests/crash/test_full_disk.py")),
    Part("power cuts", "the power is cut after each write of the disk, in every verb that replaces something: the old "
         "or the new one is there",
         (*NODES, "--unit", "cuts", "tests/crash/power/test_power_cuts.py")),
    Part("kills", "`kill -9` of a writer at a random moment, judged by a model of what it was doing",
         (*NODES, "--unit", "kills", "tests/crash/test_kill.py")),
    Part("kills of copies", "`kill -9` of a copy to a directory at a random moment; the next one goes on",
         (*NODES, "--unit", "kills", "tests/crash/test_copy.py")),
    Part("kills of deletions", "`kill -9` while a group is deleted or overwritten; the same call is made again",
         (*NODES, "--unit", "rounds", "tests/crash/test_deletion.py::test_a_kill_of_what_deletes_a_group")),
    Part("races", "two or three processes or threads call random verbs on one node at the same time, judged by the log "
         "of all calls: every element is that of a writer, and the outcome is that of some order of the calls",
         ("python", "-m", "tests.crash.races")),
    Part("unaligned writers", "threads and processes write parts of the same chunks, in all formats: no element is "
         "lost",
         ("python", "-m", "tests.crash.races.unaligned")),
    Part("threads", "tests of locks, plans, caches, shards and readers that share, with the thread sanitizer",
         ("python", "-m", "tests.campaign.threads")),
    Part("other machines", "arrays are exchanged, both ways, with emulated machines of other processors, byte orders "
         "and sizes of pointers", ("python", "-m", "tests.campaign.machines")),
    Part("re-entry", "every public call from a signal handler, a `__del__`, an `__array__`, a coroutine, a forked "
         "child, and a thread at the end of the interpreter",
         ("python", "-m", "tests.crash.reentry")),
    Part("lives of stores", "random sequences of calls, kills and openings over every store, compared with a model of "
         "NumPy arrays and with zarr-python after each step",
         ("python", "-m", "tests.property.life")),
    Part("odd keywords", "values of odd types and sizes for all keywords of the functions that create, open and copy, "
         "in every format, one by one and several together: a result that holds together, a TypeError, a ValueError or "
         "a ZcoreError", (*NODES, "--unit", "calls", "tests/fuzz/test_odd_keywords.py")),
    *(Part(f"fuzz {target}", f"inputs that libFuzzer makes of the corpus: `{target}`",
           ("python", "-m", "tests.fuzz.run", target)) for target in TARGETS),
)
