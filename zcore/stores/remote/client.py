"""What speaks to a service that keeps objects: the interface of a client.

A client knows names and bytes, nothing of keys or arrays. There is one for each library that does the talking; who
writes another one defines `get`, and of the rest what its service can do.
"""
from collections import namedtuple

# What was read: the bytes, where they begin in the object, its size, and its tag, a value that changes with the
# content; None where the service has none.
Answer = namedtuple("Answer", ("data", "start", "size", "tag"))
Standing = namedtuple("Standing", ("size", "tag"))

MAX_WHOLE_NBYTES = 2**31 - 1  # of an object that is read to its end, whatever size a server tells

ABSENT = object()  # the condition of `put` that there is no object yet


class ConditionError(Exception):
    """The object is not what a `put` demands, and was not replaced."""


class Client:
    """What speaks to a service.

    A method that fails raises whatever its library raises, with a message; who calls it adds the name and the range.

    Attributes
    ----------
    url : str
        What names are appended to, for messages.
    lists, writes : bool
        Whether the service can list, and whether objects can be changed.
    swaps : bool
        Whether `put` takes a tag as its condition, and `ABSENT`.
    """

    url = ""
    lists = True
    writes = False
    swaps = False

    def get(self, name, byte_range):
        """Return the `Answer` of an object, or of the part that a byte range means, or None when there is none.

        `byte_range` is one of `Store.get`, checked, or None. What is returned is all of the part that lies in the
        object.
        """
        raise NotImplementedError

    def standing(self, name):
        """Return the `Standing` of an object, or None when there is none."""
        answer = self.get(name, None)
        return None if answer is None else Standing(answer.size, answer.tag)

    def put(self, name, data, condition=None):
        """Replace an object and return its tag, or None where the service does not tell.

        `condition` is the tag that the object has to have, or `ABSENT`.

        Raises : ConditionError, if it is not so.
        """
        raise NotImplementedError

    def delete(self, names):
        """Remove objects; those that are not there are no error."""
        raise NotImplementedError

    def list_dir(self, prefix):
        """Return the names and the prefixes right below a prefix, which end with ``/``, unsorted."""
        raise NotImplementedError

    def list_all(self, prefix):
        """Return an iterator over lists of (name, size) of all objects below a prefix."""
        raise NotImplementedError
