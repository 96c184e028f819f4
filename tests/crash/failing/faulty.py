"""Verbs that do what zcore must not: each is to be found by the rounds. What is found begins with these words."""
import os

import numpy as np

import zcore
from tests.crash.failing.verbs import SAFE, VALUES, Verb


def make(base):
    np.save(base + "/x.npy", VALUES)


def told(function):
    """Return a call whose errors of the system are errors of zcore."""
    def call(base, kept):
        try:
            function(base, kept)
        except OSError as exc:
            raise zcore.StoreError(f"cannot write {base}", errno=exc.errno) from exc
    return call


def replace(base, name=".__zc_tmp.new"):
    """Replace the file as it should be done."""
    with open(f"{base}/{name}", "wb", buffering=0) as file:
        np.save(file, 2 * VALUES)
    os.replace(f"{base}/{name}", base + "/x.npy")


def in_place(base, kept):
    with open(base + "/x.npy", "r+b", buffering=0) as file:
        os.truncate(file.fileno(), 0)
        np.save(file, 2 * VALUES)


def keeps_open(base, kept):
    fd = os.open(base + "/x.npy", os.O_RDONLY)
    os.stat(base)
    os.close(fd)
    replace(base)


def silent(base, kept):
    try:
        replace(base)
    except OSError:
        return


def only_once(base, kept):
    if "failed" in kept:
        raise zcore.StoreError(f"{base} has failed before")
    kept["failed"] = True
    replace(base)
    del kept["failed"]


FAULTY = {name: (Verb(make, call, True, (), False, SAFE, False), found) for name, call, found in (
    ("raw error", lambda base, kept: replace(base), "OSError("),
    ("in place", told(in_place), "another process cannot read it"),
    ("keeps open", told(keeps_open), "a descriptor is left open"),
    ("silent", silent, "no error, and another state"),
    ("leaves a temporary file", told(lambda base, kept: replace(base)), "temporary files are left"),
    ("leaves a file", told(lambda base, kept: replace(base, "new.npy")), "these are left"),
    ("only once", told(only_once), "the second call fails"),
    ("another name in the error", lambda base, kept: told(lambda *_: replace(base))("/elsewhere", kept), "StoreError("),
)}
