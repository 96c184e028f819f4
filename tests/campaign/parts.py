"""The parts: add one as one entry. The contract of their commands is on the first page (`__init__.py`)."""
from collections import namedtuple

# `what` continues the sentence "what was tried: …".
Part = namedtuple("Part", ("name", "what", "command"))

NODES = ("python", "-m", "tests.campaign.nodes")

PARTS = (
    Part("failing calls", "each call of the system fails once, in each of 14 ways, in every verb that writes: then the "
         "old or the new state is there, another process reads it, the same handle works again, nothing is left",
         ("python", "-m", "tests.crash.failing")),
    Part("failing requests", "each request to a service fails once, or is carried out and its answer is lost, in every "
         "verb that writes to a service",
         ("python", "-m", "tests.crash.failing.service")),
    Part("no memory", "each request of the compiled code for memory fails once, for each compressor and filter",
         (*NODES, "--unit", "requests", "tests/crash/test_failing_calls.py::test_memory_that_is_not_there")),
    Part("full disk", "every verb that writes, on a disk with no free page, one, two, until there is room",
         (*NODES, "--unit", "full disks", "tests/crash/test_full_disk.py")),
    Part("kills", "`kill -9` of a writer at a random moment, judged by a model of what it was doing",
         (*NODES, "--unit", "kills", "tests/crash/test_kill.py")),
    Part("kills of copies", "`kill -9` of a copy to a directory at a random moment; the next one goes on",
         (*NODES, "--unit", "kills", "tests/crash/test_copy.py")),
    Part("kills of deletions", "`kill -9` while a group is deleted or overwritten; the same call is made again",
         (*NODES, "--unit", "rounds", "tests/crash/test_deletion.py::test_a_kill_of_what_deletes_a_group")),
)
