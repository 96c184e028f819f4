"""Objects in any filesystem of fsspec."""
from __future__ import annotations

from zcore.errors import StoreError
from zcore.stores.remote.client import Answer, Client, Standing


class FsspecClient(Client):
    """A client over a filesystem of fsspec; what it keeps of listings is not believed.

    Notes
    -----
    No filesystem says under which tag bytes were read, so nothing is kept between reads, and there is no conditional
    put. Some answer a range with the whole object; the size tells, which is asked for where it matters.
    """

    def __init__(self, filesystem):
        self._filesystem = filesystem
        self.writes = type(filesystem).__name__ != "HTTPFileSystem"
        protocol = filesystem.protocol
        self.url = f"{protocol if isinstance(protocol, str) else protocol[0]}://"

    def __reduce__(self):
        return FsspecClient, (self._filesystem,)

    def get(self, name, byte_range):
        start, length = (0, None) if byte_range is None else byte_range
        size = None
        if start != 0 or length == 0:
            standing = self.standing(name)
            if standing is None:
                return None
            size = standing.size
            start = max(0, size - length) if start is None else start
        stop = length if size is None else size if length is None else min(start + length, size)
        if size is not None and start >= stop:
            return Answer(b"", start, size, None)
        try:
            # Bounds are given as they are: None means all there is, and some take no others for that.
            data = self._filesystem.cat_file(name, start=start or None, end=stop)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        data = bytes(data)
        if size is None:
            # A prefix, also where the range was not heeded.
            return Answer(data if stop is None else data[:stop], 0, max(len(data), 0), None)
        if len(data) == size:
            data = data[start:stop]
        if len(data) != stop - start:
            raise StoreError(f"{len(data)} bytes came, for bytes {start} to {stop} of {size}")
        return Answer(data, start, size, None)

    def standing(self, name):
        self._filesystem.invalidate_cache()
        try:
            found = self._filesystem.info(name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if found["type"] == "directory":
            return None
        if found["size"] is None:
            return Standing(len(self._filesystem.cat_file(name)), None)
        return Standing(int(found["size"]), None)

    def put(self, name, data, condition=None):
        above = name.rpartition("/")[0]
        if above:
            self._filesystem.makedirs(above, exist_ok=True)
        self._filesystem.pipe_file(name, bytes(data))

    def delete(self, names):
        for name in names:
            try:
                self._filesystem.rm_file(name)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                pass

    def list_dir(self, prefix):
        names, prefixes = [], []
        for name, _, is_prefix in self._listed(prefix):
            if is_prefix:
                prefixes.append(name + "/")
            else:
                names.append(name)
        return names, prefixes

    def list_all(self, prefix):
        pending = [prefix]
        while pending:
            page = []
            for name, size, is_prefix in self._listed(pending.pop()):
                if is_prefix:
                    pending.append(name + "/")
                else:
                    page.append((name, size))
            yield page

    def _listed(self, prefix):
        """Return (name, size, whether it is that of a prefix) of what lies right below a prefix."""
        self._filesystem.invalidate_cache()
        # Names come as the filesystem spells them, which may have another beginning.
        above = self._filesystem._strip_protocol(prefix.rstrip("/")).rstrip("/") + "/"
        try:
            items = self._filesystem.ls(above.rstrip("/"), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for item in items:
            name = item["name"].rstrip("/")
            # Of what is no prefix some list the thing itself, and others the marker of a directory.
            if above == "/" and not name.startswith("/"):
                name = "/" + name
            if name.startswith(above) and len(name) > len(above):
                found.append((prefix + name[len(above):], item["size"], item["type"] == "directory"))
        return found


def parts_of(place):
    """Return the filesystem of a filesystem or mapper, and the name below which its keys lie."""
    if type(place).__name__ == "FSMap":
        return place.fs, place.root.rstrip("/")
    return place, ""
