"""A node of a hierarchy, bound to the store that holds its document: what arrays and groups have in common."""
import os
from itertools import count

from zcore.errors import LockError, NodeNotFoundError, ReadOnlyError, ZcoreError, warn_of
from zcore.formats import MAX_NBYTES
from zcore.model.metadata import GroupMetadata
from zcore.stores.keys import prefix_of
from zcore.views import UNSEEN, is_reshaped, renewed, view_of


class NodeBinding:
    """One node in one store.

    Parameters
    ----------
    store : Store
    path : str
        Of the node in the store, ``""`` for the root.
    format : module
        Of `zcore.formats`.
    options : Options
    view : View, optional
        What the metadata document says, where the caller has just read it.

    Attributes
    ----------
    view : View
        The document as it was read last.
    document : str
        Key of the metadata document.
    document_name : str
        Its last part, which says for some formats what the node is.
    kind : type
        Of the metadata.

    Raises
    ------
    NodeNotFoundError
        There is no such document, or it describes a node of another kind.
    MetadataError, UnsupportedError
        The document is damaged, or needs what zcore does not have.
    """

    __slots__ = ("store", "path", "prefix", "format", "options", "document_name", "document", "view", "_tickets")

    kind = None
    what = "node"

    def __init__(self, store, path, format, options, view=None):
        self.store = store
        self.path = path
        self.prefix = prefix_of(path)
        self.format = format
        self.options = options
        self.document_name = self.name_of_document(format)
        self.document = self.prefix + self.document_name
        self.view = view
        self._tickets = count(1)
        if view is None:
            self.reload()

    @staticmethod
    def name_of_document(format):
        """Return the name of the document of a node of this kind."""
        raise NotImplementedError

    @property
    def metadata(self):
        """What the document said when it was read last."""
        return self.view.metadata

    def look(self):
        """Read the document again and return what it says, a `View`; the binding stays as it is."""
        ticket = next(self._tickets)
        # One byte more than a document may have: the format refuses it, whatever the size of the file.
        try:
            found = self.store.get_first(self.prefix, (self.document_name,), MAX_NBYTES + 1)
        except ZcoreError as error:
            error.locate(self.describe())
            raise
        if found is None:
            raise self.not_found(f"{self.document} does not exist")
        return self.view_of(*found[1:], ticket)

    def view_of(self, raw, identity, ticket=None):
        """Return the view of the document `raw`, the content of the object `identity`, read just now."""
        ticket = next(self._tickets) if ticket is None else ticket
        known = self.view
        if known is not None and known.raw == raw:
            return renewed(known, raw, identity, ticket)
        try:
            view = view_of(self.format, self.document_name, raw, identity, self.path, self.options, ticket)
        except ZcoreError as error:
            error.locate(self.describe())
            raise
        if view.notes and (self.view is None or self.view.notes != view.notes):
            warn_of(self.describe(), view.notes)
        if type(view.metadata) is not self.kind:
            raise self.not_found(f"{self.document} describes another kind of node")
        return view

    def not_found(self, reason):
        """Return the error of a node that is not there."""
        return NodeNotFoundError(f"no {self.what} at {self.describe()}: {reason}", path=self.path,
                                 format=self.format.name)

    def adopt(self, view):
        """Take a view over, unless another thread has a later one."""
        if self.view is None or self.view.ticket < view.ticket:
            self.view = view

    def reload(self):
        """Read the document again, take it over, and return its view."""
        view = self.look()
        self.adopt(view)
        return view

    def see(self):
        """Read the document if it has only been described by another process; then the node is there."""
        if self.view.ticket == UNSEEN:
            self.reload()

    def describe(self):
        """Return where the node is, for messages."""
        return self.store.describe(self.path)

    def check_writable(self):
        """Raise ReadOnlyError when this handle or its store is for reading."""
        if self.store.read_only and (not self.options.read_only or self.store.uri is None):
            # Another mode would not help: the caller has made this store, or unpickled it, as one for reading, or it is
            # of a kind that no mode makes writable.
            raise ReadOnlyError(f"{self.describe()} lies in a store for reading, {self.store!r}", key=self.document)
        if self.options.read_only:
            raise ReadOnlyError(f"{self.describe()} is open for reading; mode='r+' opens it for writing",
                                key=self.document)

    def locks(self):
        """Return the `ObjectLocks` of the node."""
        return self.store.locks(self.path, self.document_name)

    @staticmethod
    def render(format, metadata):
        """Return the document that says `metadata`."""
        raise NotImplementedError

    def exclusive(self):
        """Return a context manager that keeps all other writers of this node out, with the metadata read anew."""
        return Exclusive(self)


class GroupBinding(NodeBinding):
    """One group in one store; see `NodeBinding`."""

    __slots__ = ()

    kind = GroupMetadata
    what = "group"

    @staticmethod
    def name_of_document(format):
        return format.group_document

    @staticmethod
    def render(format, metadata):
        return format.render_group(metadata)


class Exclusive:
    """The whole range of a binding's document, held; what `NodeBinding.exclusive` returns.

    Attributes
    ----------
    view : View
        The document that is held. Unlike the binding's it cannot change through another thread with the same handle.
    """

    def __init__(self, binding):
        self._binding = binding
        self._hold = None
        self.view = None

    @property
    def metadata(self):
        """What the document that is held says."""
        return self.view.metadata

    def __enter__(self):
        binding = self._binding
        try:
            if binding.options.lock:
                # Noted before it is held, as Ctrl-C may come between the two.
                self._hold = binding.locks().whole()
                self._hold.__enter__()
            self.view = binding.reload()
        except BaseException as exc:
            self.__exit__(type(exc), exc, exc.__traceback__)
            if not isinstance(exc, FileNotFoundError):
                raise
            raise binding.not_found("its document is gone") from exc
        return self

    def __exit__(self, kind, exc, traceback):
        if isinstance(exc, ZcoreError):
            exc.locate(self._binding.describe())
        if self._hold is not None:
            hold, self._hold = self._hold, None
            hold.__exit__(kind, exc, traceback)

    def replace_metadata(self, metadata):
        """Write a new document and go on holding the array, under the new one."""
        binding = self._binding
        raw = binding.render(binding.format, metadata)
        if self._hold is not None and self._hold.dir_fd >= 0:
            identity = self._hold.replace(raw, token=int.from_bytes(os.urandom(8)), fsync=binding.store.fsync)
        elif self._hold is not None and binding.store.swaps:
            identity = binding.store.set_if_same(binding.document, raw, self.view.identity)
            if identity is None:
                raise LockError(f"{binding.document}: another process has replaced the document meanwhile, and it "
                                "stays as that has left it", key=binding.document)
        else:
            binding.store.set(binding.document, raw)
            identity = binding.store.identity(binding.document)
        if is_reshaped(metadata, self.metadata):
            self.view = renewed(self.view, raw, identity, next(binding._tickets), metadata)
        else:
            self.view = binding.view_of(raw, identity)
        binding.adopt(self.view)
