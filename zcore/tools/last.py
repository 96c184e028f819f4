"""A store whose documents come last: whatever is written through it is no node for anybody else before it is whole."""
from zcore.formats import NODE_DOCUMENTS
from zcore.stores.base import Listing, Store
from zcore.stores.memory import MemoryStore

_DOCUMENTS = frozenset(document for documents in NODE_DOCUMENTS.values() for document in documents)


def _is_document(key):
    return key.rpartition("/")[2] in _DOCUMENTS


class DocumentsLast(Store):
    """Another store, but for the documents of nodes, which are kept back until `finish`.

    Parameters
    ----------
    inner : Store
        Where all else is written to at once.
    """

    read_only = False

    def __init__(self, inner):
        self._inner = inner
        self._documents = MemoryStore()
        self._written = set()
        self.key_flavour = inner.key_flavour
        self.n_requests = inner.n_requests

    def __repr__(self):
        return repr(self._inner)

    def get(self, key, byte_range=None):
        found = self._documents.get(key, byte_range) if _is_document(key) else None
        return self._inner.get(key, byte_range) if found is None else found

    def list_dir(self, prefix):
        return Listing(*[sorted({*ours, *theirs}) for ours, theirs
                         in zip(self._documents.list_dir(prefix), self._inner.list_dir(prefix), strict=True)])

    def set(self, key, value):
        if _is_document(key):
            self._documents.set(key, value)
        else:
            self._written.add(key)
            self._inner.set(key, value)

    def set_if_not_exists(self, key, value):
        if self.get(key) is not None:
            return False
        self.set(key, value)
        return True

    def erase(self, key):
        self._documents.erase(key)
        self._inner.erase(key)

    def make_directory(self, prefix):
        self._inner.make_directory(prefix)

    def finish(self):
        """Write the documents, those of nodes below others first."""
        for key in sorted(self._documents.list(), key=lambda key: (-key.count("/"), key)):
            self._inner.set(key, self._documents.get(key))

    def discard(self):
        """Erase what was written."""
        for key in self._written:
            self._inner.erase(key)
