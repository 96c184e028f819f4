"""Every code of a failed kernel call can be told: there is a sentence for it."""
import re
from pathlib import Path

import zcore

KERNEL = Path(zcore.__file__).parent / "kernel"


def test_every_code_is_told():
    codes = re.search(r"cdef enum Code:(.*?)\ncdef enum", (KERNEL / "status.pxd").read_text(), re.DOTALL)[1]
    told = (KERNEL / "status.pyx").read_text().partition("cdef void status_clear")[0]
    names = re.findall(r"^    ([A-Z][A-Z0-9_]+) = ", codes, re.MULTILINE)
    assert len(names) >= 50 and "STALE" in names
    # Locks have their own sentences, and what a codec in Python raises is its own.
    left = {name for name in names if not re.search(rf"^ .*\b{name}: ", told, re.MULTILINE)}
    assert left == {"OK", "LOCK_FAILED", "LOCK_OWN", "RAISED"}
