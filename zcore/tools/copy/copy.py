"""Copies a node with all below it to another place, format, chunking or type."""
from __future__ import annotations

import errno
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from zcore import config, workers
from zcore.engine.options import Options
from zcore.errors import InvalidKeyError, StoreError, UnsupportedError, ZcoreError
from zcore.formats import check_format
from zcore.model.dtypes import numpy_dtype
from zcore.model.named_codecs import named_codec
from zcore.model.value import check_kind
from zcore.text.arguments import as_bool, room_of
from zcore.text.tried_names import advising
from zcore.tools.copy.destinations import Destination
from zcore.tools.copy.sources import FOREIGN, SourceArray, open_source
from zcore.tools.copy.stacked import StackedSource
from zcore.tools.copy.transfer import MAX_TOGETHER, Progress, Slabs, is_small, pass_objects
from zcore.tools.copy.translate import ENUMS, CopyRequest, Losses, passes_on
from zcore.tools.spread import check_client, check_shared

if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any

    from zcore.nodes.array import Array
    from zcore.nodes.group import Group
    from zcore.nodes.keywords import CodecsLike
    from zcore.stores.base import StoreLike
    from zcore.typing import CacheSize, Chunks, DTypeLike, Format, Order, Selection, Shards


@advising
def copy(source: StoreLike | Array | Group | list[StoreLike | Array | Group], destination: StoreLike, *,
         path: str | list[str] = "", destination_path: str = "", along: str | None = None, chunks: Chunks = None,
         shards: Shards | None = None, codecs: CodecsLike | None = None, compressors: CodecsLike | str | None = None,
         dtype: DTypeLike | None = None, order: Order | None = None, zarr_format: Format | None = None,
         selection: Selection = None, memory: CacheSize = "1 GB", overwrite: bool = False, threads: int | None = None,
         client: Any = None, progress: Callable[[int, int], object] | None = None,
         checksum: bool = False, fsync: bool | None = None) -> Array | Group | None:
    """Copy an array, or a group with all below it.

    Objects that stay the same are passed on as they are stored, without a decode: a ``__zmeta__`` array becomes one of
    Zarr v2 or v3 by copying its objects under other names. Else elements are read and written in parallel, each object
    once as far as `memory` allows. The destination is not there before it is complete. If it is a directory, a copy
    that was interrupted goes on when it is called again with the same arguments, unless the files of the source were
    written to since.

    Parameters
    ----------
    source : str, os.PathLike, mapping, Store, Array or Group
        A directory, a file ``.zip`` or ``.ozx``, a reference set, a URL, a store, a node, also one of zarr-python; or a
        file ``.npy``, ``.npz``, ``.asdf`` (extra "asdf"), ``.h5``, ``.hdf5``, ``.nc`` or ``.nc4`` (extra "hdf5"), or
        ``.tif`` (package tifffile). Or a list of these: arrays of one shape and type are stacked along a new first
        dimension, in the order of the list.
    destination : str, os.PathLike or Store
        A directory, a URL, a store; or a file ``.zip``, or ``.ozx`` (OME-Zarr in a zip file, by RFC-9 of NGFF), or
        one of the files above but TIFF.
    path, destination_path : str, optional
        Of the node in the source, and of the new one in the destination; by default the root. The path may be a list
        if the source is one.
    along : str, optional
        The name of a dimension: arrays of a list that have it are joined along it, instead of stacked. All others must
        be equal in all sources.
    chunks, shards, codecs, compressors, dtype, order
        Of new arrays, as `zcore.create_array` takes them; None for those of the source. ``shards=False`` cuts shards up
        into their chunks. In a group, lengths of chunks and shards are for the arrays with as many dimensions; all
        others keep theirs.
    zarr_format : {3, 2, "zmeta"}, optional
        By default that of the source, or 3.
    selection : object, optional
        Integers, slices with any step and ..., of an array; by default all.
    memory : int or str
        Maximum memory for elements and for their codecs. A single object, a chunk or a shard, may need more.
    overwrite : bool
        Replace the node at the destination, with all below it. Files that belong to no node stay.
        A file is replaced as a whole, so one node in it cannot be replaced.
    threads : int, optional
        By default `zcore.config.threads`.
    client : distributed.Client, optional
        Copy on the workers of this client, which see the same files or services. Each uses that `memory`. Whatever has
        ``submit`` as the executors of `concurrent.futures` will do. The source is in a store that has a path or a URL,
        and the destination is a directory or a service. A rechunking copy to a service may have an array between two
        passes in the directory of ``TMPDIR``, which workers on other hosts must see, too.
    progress : callable, optional
        ``progress(done, total)`` is called from time to time, in bytes of elements.
    checksum : bool
        Append ``crc32c`` to the codecs of new arrays that lack it, which are then decoded and encoded; Zarr v3 only. By
        default a copy adds no checksum.
    fsync : bool, optional
        The copy is on the disk when the call returns; by default as the destination is opened, or
        `zcore.config.fsync`. A node or file that is replaced stays until the copy is whole.

    Returns
    -------
    Array, Group or None
        The new node, opened for reading; None if the destination is a file that is no store.

    Raises
    ------
    NodeNotFoundError
        There is no node at the source, or it was deleted before it was copied.
    NodeExistsError
        There is a node or a file at the destination, and `overwrite` is false.
    ValueError, TypeError, UnsupportedError
        The destination cannot express the request. Or the sources of a list do not agree.
    ChunkError, StoreError
        Something could not be read or written. A copy to a directory keeps its state, and can go on. Or the source was
        replaced by another array meanwhile.
    SelectionError
        The source was shrunk meanwhile; or `selection` is not valid.

    Warns
    -----
    UserWarning
        Names attributes, dimension names, groups and consolidated metadata that the destination cannot keep.
    IncompleteCopyWarning
        Names datasets of an HDF5 file, and members of an ``.npz`` file, that are no arrays and are left out, and files
        in the directories of groups that belong to no node.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.array([[1, 2, 3], [4, 5, 6]], chunks=(1, 3))
    >>> b = copy(a, zcore.MemoryStore(), chunks=(2, 1), zarr_format=2)
    >>> b.chunks, b.zarr_format, b[:, 1]
    ((2, 1), 2, array([2, 5]))
    """
    check_format(zarr_format)
    memory = room_of(memory, "memory")
    overwrite = as_bool(overwrite, "overwrite")
    check_kind(progress, "progress", (Callable,), "a function of two integers")
    if client is not None:
        check_client(client)
        check_shared(source, "source")
        check_shared(destination, "destination")
    wanted = CopyRequest(chunks, shards, codecs, compressors, None if dtype is None else numpy_dtype(dtype), order,
                    as_bool(checksum, "checksum") or None)
    top = path if isinstance(path, str) else ""     # a list of sources has no common one
    losses = Losses(top)
    threads = Options(threads=threads).threads
    place = Destination(destination, destination_path, overwrite, fsync)     # before the source, which may lie there
    if not isinstance(source, (list, tuple)) and along is not None:
        raise ValueError(f"along={along!r} joins the sources of a list, and there is one source")
    with (StackedSource(source, path, selection, threads, along) if isinstance(source, (list, tuple))
          else open_source(source, path, selection, threads)) as opened:
        # All that determines the pieces of work.
        job = {"source": opened.identity, "format": zarr_format, "selection": repr(selection), "memory": memory,
               "threads": threads or config.threads, "wanted": _text(wanted), "zcore": config.__version__}
        root_format = zarr_format or opened.nodes[0][1].zarr_format or 3
        for what, name in opened.lost:
            losses.note(what, name)
        for what, name in opened.left_out:
            if what != FOREIGN or opened.address != place.address:     # such files stay where a node is replaced
                losses.leave_out(what, name)
        with place.sink(job, root_format, isinstance(opened.nodes[0][1], SourceArray), zarr_format, losses,
                        threads) as (sink, work):
            if work.is_begun and opened.has_changed_since(work.began):
                work.begin_anew()
            if refused := [wish for wish, value in wanted._asdict().items() if wish not in sink.takes and value]:
                raise ValueError(f"{place}: a file of this kind has no choice of {', '.join(refused)}")
            arrays = [node for _, node in opened.nodes if isinstance(node, SourceArray)]
            reported = Progress(progress, sum(_nbytes(array, wanted) for array in arrays))
            made, copier = {}, NodeCopier(sink, wanted, losses, top if opened.leaves_out else None,
                                          {len(array.shape) for array in arrays})
            if sink.documents_first:
                for name, node in opened.nodes:
                    made[name] = copier.make(name, node)
                sink.close()
            filler = _Filler(sink, wanted, memory, threads, work, reported, client,
                             client is None and max(opened.n_requests, sink.n_requests) > 1)
            for name, node in opened.nodes:
                target = made.pop(name) if name in made else copier.make(name, node)
                if isinstance(node, SourceArray):
                    filler.add(name, node, target)
            filler.end()
            _check(opened, work.discard)
            sink.close()
    losses.warn(str(place))
    return place.opened(threads)


class NodeCopier:
    """Makes the new nodes. Those that the destination cannot hold are left out, with all below them.

    `path` is that of the node in the source; None if nothing may be left out. `ranks` are those of all its arrays.
    """

    def __init__(self, sink: Any, wanted: Any, losses: Any, path: str | None,
                 ranks: Set[int] = frozenset()) -> None:
        self._sink, self._wanted, self._losses, self._path, self._ranks = sink, wanted, losses, path, ranks
        self._absent = []

    def make(self, name: str, node: Any) -> Any:
        """Make a node, and return the target of an array; None if the array is left out."""
        if any([name.startswith(f"{path}/") for path in self._absent]):
            return None
        try:
            if not isinstance(node, SourceArray):
                return self._sink.group(name, node)
            target = self._sink.array(name, node, self._wanted.of(node, self._ranks))
            if node.has_enum and not self._sink.keeps_enums:
                self._losses.note(ENUMS, name)
            return target
        except InvalidKeyError:
            if not name or self._path is None:
                raise
            self._losses.leave_out("members with names that no node can have", repr(name))
        except UnsupportedError as exc:
            if self._path is None:
                raise
            if not name:
                raise UnsupportedError(f"{self._path or 'the root'}: {exc.message}", feature=exc.feature) from exc
            self._losses.leave_out(f"datasets with {exc.feature}", name)
        self._absent.append(name)
        return None


class _Filler:
    """Copies the elements to the new arrays. Where answers take long (`is_far`), small arrays go together."""

    def __init__(self, sink, wanted, memory, threads, work, progress, client, is_far):
        self._sink, self._wanted, self._work, self._progress, self._client = sink, wanted, work, progress, client
        self._memory, self._threads, self._is_far = memory, threads, is_far
        self._waiting, self._is_gone = [], False

    def add(self, name, node, target):
        """Copy an array to its target, if that is not None; a small one when there are enough of them, or in `end`."""
        is_alone = target is None or not (self._is_far and is_small(node, target, self._memory))
        if is_alone:
            self.end()
        self._waiting.append((name, node, target))
        if is_alone or len(self._waiting) == MAX_TOGETHER:
            self.end()
        if is_alone and target is not None:
            self._sink.end(name)

    def end(self):
        """Copy those that wait."""
        arrays, self._waiting = self._waiting, []
        self._progress.begin(sum(_nbytes(node, self._wanted) for _, node, _ in arrays))
        try:
            workers.each(self._fill, [one for one in arrays if one[2] is not None], len(arrays))
        finally:
            if self._is_gone:
                self._work.discard()     # now that none of them is being copied

    def _fill(self, array):
        name, node, target = array
        try:
            with node.watched():
                self._copy(node, target)
                _check(node, self._note_gone)
        except ZcoreError:
            _check(node, self._note_gone)     # another reason must not hide that the source is gone
            raise
        except (TypeError, ValueError) as error:
            if name and type(error) in (TypeError, ValueError):     # an element that the type cannot hold
                error.args = (f"{name}: {error}",)
            raise

    def _copy(self, source, target):
        memory, work, progress, client = self._memory, self._work, self._progress, self._client
        binding = getattr(target, "binding", None)
        if binding is not None and passes_on(source, binding.metadata) and source.binding.store.lists:
            pass_objects(source.binding, binding, memory, work.is_begun, progress, client)
        else:
            Slabs(source, target, memory, self._threads, work, progress, client).run()

    def _note_gone(self):
        self._is_gone = True


def _check(source, discard):
    """Check that the source is still the one that was opened. Else the copy is worthless, and `discard` is called."""
    try:
        source.check()
    except ZcoreError as error:
        if not isinstance(error, StoreError) or error.errno == errno.ESTALE:     # else it cannot be told
            discard()
        raise


def _nbytes(array, wanted):
    return math.prod(array.shape) * (array.dtype if wanted.dtype is None else wanted.dtype).itemsize


def _text(wanted):
    """Return the request as text. It names codecs by their parameters, not by addresses in memory."""
    def shown(value):
        if isinstance(value, (list, tuple)):
            return [shown(item) for item in value]
        try:
            return repr(named_codec(value))
        except (TypeError, ValueError):
            return repr(value)

    return repr([shown(value) for value in wanted])
