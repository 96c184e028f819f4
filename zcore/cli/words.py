"""Messages of zcore's functions in the words of the command: its options for keywords, its verbs for functions."""
from __future__ import annotations

import re

# Words of the functions' messages, the longest first, and those of the command.
WORDS = {
    "overwrite=True (mode 'w')": "--overwrite", "overwrite=True": "--overwrite", "checksum=True": "--checksum",
    "pass zarr_format=3": "pass --zarr-format 3", "clevel=0": "--compressor blosc:lz4:0",
    "'gzip', a GzipCodec, 'auto', or () for no compression": "gzip, gzip:LEVEL, auto or none",
    "unsupported='skip'": "--skip", "lock='file'": "ZCORE_LOCK=file", "lock=None": "ZCORE_LOCK=off",
    "skip_signature=True": "AWS_SKIP_SIGNATURE=true", "strict=False": "zcore.open(path, strict=False) in Python",
    "mode 'w' or zcore.ZipStore(path, mode='w')": "zcore cp",
    "zcore.asdf.open(path, mode='rw')": "zcore.asdf.open(path, mode='rw') in Python",
    "zcore.ReferenceStore(path, read_only=False)": "zcore.ReferenceStore(path, read_only=False) in Python",
    "zcore.references(source).save(path)": "zcore refs make", "zcore.references_from_hdf5": "zcore refs make",
    "zcore.copy(sources, destination, along=…)": "zcore cp --along", "zcore.copy": "zcore cp",
    "without along=": "with --stack instead of --along", "use_consolidated=False": "use_consolidated=False in Python",
    "zcore.consolidate_metadata": "zcore.consolidate_metadata in Python",
    'zcore.verify(…, repair="stale copy")': 'zcore verify --repair-kind "stale copy"',
}
# Not at the beginning or in a path, where the name of a file stands.
_WORD = re.compile(rf"(?!^)(?<![\w./'\"-])({'|'.join(map(re.escape, WORDS))})(?![\w/'\"-]|\.\w)")
# A store as Python shows it; a node below; a target that a set may not point to.
_STORE = re.compile(r"(?:Asdf|Directory|Reference|Remote|Zip)Store\('((?:[^'\\]|\\.)*)'[^()]*\)")
_BELOW = re.compile(r"^(.+) (holds no \w+); path='([^']*)' is a node")
_TARGET = re.compile(r"; (allowed=\['[^']*'\]) would permit it")


# What the user has written, and no message changes: paths, options. Set by the command.
spoken: list[str] = []


def translated(message: str) -> str:
    """Return a message in the words of the command. What the user has written stays as it is.

    >>> translated("ZipStore('a.zip') is read-only; zcore.copy, with overwrite=True")
    'a.zip is read-only; zcore cp, with --overwrite'
    """
    names = "|".join([re.escape(said) for said in spoken if any([word in said for word in WORDS])])
    # Between what is found of the group, whose matches have the odd numbers.
    parts = re.split(f"({names})", message) if names else [message]
    parts[::2] = [_WORD.sub(lambda found: WORDS[found[1]], part) for part in parts[::2]]
    message = _STORE.sub(r"\1", "".join(parts))
    message = _BELOW.sub(r"\1 \2; \1/\3 is a node", message)
    return _TARGET.sub(r"; zcore.ReferenceStore(set, \1) in Python would permit it", message)
