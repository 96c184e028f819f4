"""The open files of this process: what a test leaves."""
import os

import pytest

needs_a_list = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs a list of descriptors")


def descriptors():
    """Return the open descriptors, each with the file that it belongs to: a set of ``(fd, device, inode)``.

    Their number is no measure. Other threads close what earlier tests have left, and helpers of a plan that is over let
    go of its files some moments later.
    """
    found = set()
    for name in os.listdir("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue     # that of the listing
        found.add((int(name), status.st_dev, status.st_ino))
    return found
