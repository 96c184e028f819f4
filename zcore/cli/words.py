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


# The arguments of the command line. A message repeats them as they were written.
spoken: list[str] = []


def translated(message: str) -> str:
    """Return a message in the words of the command. Arguments of the command line stay as they are.

    >>> translated("ZipStore('a.zip') is read-only; zcore.copy, with overwrite=True")
    'a.zip is read-only; zcore cp, with --overwrite'
    """
    said = [re.escape(one) for one in spoken if any([word in one for word in WORDS])]
    message = re.sub("|".join([*said, _WORD.pattern]), lambda found: WORDS.get(found[1], found[0]), message)
    message = _STORE.sub(r"\1", message)
    message = _BELOW.sub(r"\1 \2; \1/\3 is a node", message)
    return _TARGET.sub(r"; zcore.ReferenceStore(set, \1) in Python would permit it", message)
