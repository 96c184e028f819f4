"""A folder that a command writes to, and the files in it that are the command's own.

A small file beside the results lists the files that the command made. The next run may replace these; any other file of
a wanted name, and any folder with files and no such list, is refused before a byte is written.
"""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from zcore.stores.directory.store import DirectoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable

LIST = "zcore-demo.json"
ADVICE = "choose another folder by --out"


class Output:
    """A folder for results.

    Parameters
    ----------
    folder : str
        Made when it is missing.
    names : sequence of str
        Of the files to write.
    stale : sequence of str
        Results of earlier runs that are removed first, so that they are not taken for results of this run.

    Raises
    ------
    FileExistsError
        A file of a wanted name is not the command's own.
    OSError, ValueError
        There cannot be such a folder.
    """

    def __init__(self, folder: str, names: Iterable[str], stale: Iterable[str] = ()) -> None:
        if not folder or "://" in folder:
            raise ValueError(f"--out names a folder of this machine, found {folder!r}")
        # With ./, so that a colon is never taken for the end of a URI's scheme.
        self.folder: str = os.path.join(os.curdir, folder) if ":" in folder and not os.path.isabs(folder) else folder
        self._store = DirectoryStore(folder)
        made = self._made_before()
        for name in names:
            if os.path.lexists(self.path(name)) and name not in made:
                raise FileExistsError(f"{self.path(name)} exists and was not made by zcore demo; {ADVICE}")
        for name in made.intersection(stale):
            self._store.erase(name)
        # Before the results: a run that is killed leaves nothing that the next one would refuse.
        made = made.difference(stale).union(names)
        self.write(LIST, json.dumps({"made by": "zcore demo", "made": sorted(made)}, indent=4).encode())

    def path(self, name: str) -> str:
        """Return the path of a result."""
        return os.path.join(self.folder, name)

    def write(self, name: str, data: bytes) -> None:
        """Make bytes the content of a file of the folder, in one step."""
        self._store.set(name, data)

    def _made_before(self):
        """Return the set of names that earlier runs made and that are still there."""
        document = self._store.get(LIST)
        if document is None:
            if any(self._store.list_dir("")):
                raise FileExistsError(f"{self.folder} is not empty and was not made by zcore demo; {ADVICE}")
            return set()
        try:
            made = json.loads(document)["made"]
        except (ValueError, KeyError, TypeError):
            made = None
        if not isinstance(made, list) or not all(isinstance(name, str) for name in made):
            raise FileExistsError(f"{self.path(LIST)} is not a list that zcore demo wrote; {ADVICE}")
        return {name for name in made if os.path.lexists(self.path(name))}
