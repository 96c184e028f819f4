"""What only a file system has: directories that exist without keys, links, and names that are no keys.

A prefix is a directory there. The hierarchy asks `Store.folders` for all of this. A `DirectoryStore` is its own answer,
and all other stores share one that does nothing.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from zcore.typing import Buffer


class Folders:
    """The directories of a store, here of one without any."""

    def directory_of(self, path: str) -> str | None:
        """Return the absolute directory of the node at `path`, if another directory can take its name."""
        return None

    def check_reachable(self, prefix: str) -> None:
        """Raise StoreError if `prefix` is unreachable: then it is unknown which keys are below it."""

    def check_no_special(self, prefix: str, names: Sequence[str]) -> None:
        """Raise StoreError if one of the keys is a FIFO, a socket or a device, which must not be replaced.

        `set` does not check this. The keys are ``prefix + name`` for each of `names`.
        """

    def list_special(self, prefix: str) -> Iterable[str]:
        """Iterate over the names below `prefix` that `check_no_special` refuses.

        Every directory below `prefix` is listed. So a directory that cannot be listed is an error here, too.
        """
        return ()

    def make_directory(self, prefix: str) -> None:
        """Make the directory of `prefix`, without any key.

        Raises
        ------
        InvalidKeyError
            `prefix` is not one.
        KeyConflictError
            The directory, or one above it, has the name of a key.
        """

    def make_directory_with(self, prefix: str, names: Sequence[str], values: Sequence[bytes],
                            is_locked: bool, above: str | None) -> Any:
        """Make the directory of `prefix`, where nothing is, and set ``prefix + name`` for each of `names` in turn.

        Returns the identity of the last one, which is empty if it is not known. None if the last one was not set. Then
        `make_directory` and `set` do it, or raise the reason.

        Parameters
        ----------
        prefix : str
            The directory above exists.
        names, values : sequence
            At most two.
        is_locked : bool
            Lock the directory (`flock`) meanwhile.
        above : str, optional
            A name that has to be in the directory above once this one is locked.
        """
        return None

    def set_at(self, directory: int, key: str, value: Buffer) -> None:
        """Set a key whose directory is open as the descriptor `directory`, wherever a move has taken that."""
        raise NotImplementedError

    def prune(self, prefix: str, below: bool = False) -> None:
        """Remove the empty directories that an erased prefix leaves: at, above and maybe `below` it."""

    def is_link(self, prefix: str) -> bool:
        """Return whether `prefix` is a link, so that erasing it does not erase the keys below it."""
        return False

    def leads_up(self, prefix: str) -> bool:
        """Return whether `prefix` is a link to one of its own prefixes, where a walk would never end."""
        return False

    def may_enter(self, prefix: str, entered: set[tuple[int, int]]) -> bool:
        """Return whether a walk enters `prefix`; `entered` is a set that lives as long as the walk."""
        return True


NO_FOLDERS = Folders()
