"""A store looked through: every document against the rules of its format, every object decoded."""
from zcore.errors import UnsupportedError


def verify(store, *, path="", repair=False, threads=None, progress=None):
    """Read all that a store holds, and report what is wrong with it.

    Documents are checked against the rules of their formats, consolidated metadata against the documents, and every
    object is read and decoded, in parallel. Nothing is changed unless `repair` says so.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a zip file, a reference set, a ``file:`` URI, or a store.
    path : str, optional
        Of the node with which to begin; by default the root.
    repair : bool, str or sequence of str
        True removes left-overs, as ``"left-over"`` does; other kinds are removed only if they are named:
        ``"foreign"``, ``"damaged"`` and ``"truncated"`` objects (their elements become the fill value), and of a
        ``"stale copy"`` the copy. Temporary files that were written to in the last minute stay, as their writers may
        be alive.
    threads : int, optional
        By default `zcore.config.threads`.
    progress : callable, optional
        ``progress(done, total)`` is called now and then, in bytes of decoded elements.

    Returns
    -------
    Report

    Raises
    ------
    NodeNotFoundError
        There is no node at all.
    ReadOnlyError
        Something is to be removed from a store that is read-only.
    ValueError
        `repair` names a kind that cannot be repaired.
    """
    raise UnsupportedError("verify is being written", feature="verify")
