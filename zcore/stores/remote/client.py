"""The interface of a client, which speaks to a service for a `RemoteStore`.

A client knows names and bytes, but no keys and no arrays. There is one client for each library that speaks to services.
A new client defines `get`, and those of the other methods that its service supports.
"""
from collections import namedtuple

from zcore.errors import StoreError

# The bytes that were read, as bytes or a memoryview of bytes; the size of the object; its tag: a value that changes
# with the content, or None where the service has none. And the time of its last change, or None where that is not told.
Answer = namedtuple("Answer", ("data", "size", "tag", "modified"), defaults=(None,))
Head = namedtuple("Head", ("size", "tag", "modified"), defaults=(None,))

MAX_WHOLE_NBYTES = 2**31 - 1  # of an object that is read to its end, even if a server says that it is longer

ABSENT = object()  # the condition of `put` that there is no object yet


class ConditionError(Exception):
    """The object does not meet the condition of a `put`, and was not replaced."""


def answer_of(data, start, stop, size, tag=None):
    """Return the `Answer` with the bytes from `start` to `stop` of an object.

    Raises : StoreError, unless `data` has that length.
    """
    if len(data) != stop - start:
        raise StoreError(f"{len(data)} bytes came, for bytes {start} to {stop} of {size}")
    return Answer(data, size, tag)


class Client:
    """A connection to a service.

    A method that fails raises any exception of its library. The caller adds the name and the range to the message.

    Attributes
    ----------
    url : str
        Precedes names in messages.
    lists, writes : bool
        Whether the service can list, and whether objects can be changed.
    swaps : bool
        Whether `put` takes conditions: a tag, or `ABSENT`.
    """

    url = ""
    lists = True
    writes = False
    swaps = False

    def get(self, name, byte_range):
        """Return the `Answer` for an object, or for a part of it; None when there is no such object.

        `byte_range` is one of `Store.get`, already checked, or None. The answer has all bytes of the range that lie in
        the object.
        """
        raise NotImplementedError

    def head(self, name):
        """Return the `Head` of an object, or None when there is no such object."""
        answer = self.get(name, None)
        return None if answer is None else Head(answer.size, answer.tag)

    def put(self, name, data, condition=None):
        """Replace an object and return its tag, or None where the service does not tell it.

        `condition` is the tag that the object must have, or `ABSENT`.

        Raises : ConditionError, if the condition is not met.
        """
        raise NotImplementedError

    def delete(self, names):
        """Remove objects; a missing object is no error."""
        raise NotImplementedError

    def list_dir(self, prefix):
        """Return the names and the prefixes right below a prefix, which end with ``/``, unsorted."""
        raise NotImplementedError

    def list_all(self, prefix):
        """Return an iterator over lists of (name, size) of all objects below a prefix."""
        raise NotImplementedError
