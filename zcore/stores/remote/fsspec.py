"""Objects in any filesystem of fsspec."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import StoreError
from zcore.stores.base import resolve_range
from zcore.stores.remote.client import Answer, Client, Head, answer_of, check_absence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from zcore.stores.base import ByteRange
    from zcore.typing import Buffer

# Bytes that are asked for without knowing the size. A file on a disk takes memory for all that are asked for.
MAX_UNSIZED = 1 << 28


class FsspecClient(Client):
    """A client over a filesystem of fsspec. Its cache of listings is not used.

    Notes
    -----
    No filesystem tells the tag of the bytes that it read. So nothing is cached between reads, and there is no
    conditional put. Some filesystems answer a range with the whole object, so the size is requested where it matters.
    """

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem
        self.writes: bool = type(filesystem).__name__ != "HTTPFileSystem"
        protocol = filesystem.protocol
        self.url: str = f"{protocol if isinstance(protocol, str) else protocol[0]}://"
        # zarr-python wraps filesystems.
        self.root: str = getattr(filesystem, "sync_fs", filesystem).root_marker

    def __reduce__(self) -> tuple[Any, ...]:
        return FsspecClient, (self._filesystem,)

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        start, stop = (0, None) if byte_range is None else byte_range
        head = None
        if start != 0 or stop == 0 or stop is not None and stop > MAX_UNSIZED:
            head = self.head(name)
            if head is None:
                return None
            start, stop = resolve_range(byte_range, head.size)
            if start == stop:
                return Answer(b"", head.size, None)
        try:
            # None is no bound. Some filesystems take nothing else for that.
            data = bytes(self._filesystem.cat_file(name, start=start or None, end=stop))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as exc:
            return self._absent(exc)
        if head is None:
            # The filesystem may have ignored the range.
            return Answer(data[:stop], len(data), None)
        if len(data) == head.size:
            data = data[start:stop]
        return answer_of(data, start, stop, head.size)

    def head(self, name: str) -> Head | None:
        self._filesystem.invalidate_cache()
        try:
            found = self._filesystem.info(name)
        except (FileNotFoundError, NotADirectoryError) as exc:
            return self._absent(exc)
        if found["type"] == "directory":
            return None
        if found["size"] is None:
            return Head(len(self._filesystem.cat_file(name)), None)
        return Head(int(found["size"]), None)

    def _absent(self, exc):
        """Return None if a FileNotFoundError means that there is no object, else raise.

        fsspec's filesystem of HTTP raises it for every error of `info`, and does not tell that it has followed a
        redirect. So the server is asked again.
        """
        filesystem, url = self._filesystem, exc.args[0] if exc.args else None
        while filesystem is not None and type(filesystem).__name__ != "HTTPFileSystem":
            filesystem = getattr(filesystem, "fs", None)     # below a cache, or a directory
        if filesystem is None or not isinstance(url, str):
            return None
        from fsspec.asyn import sync

        status, urls = sync(filesystem.loop, _ask, filesystem, url)
        if status not in (404, 410):
            raise StoreError(f"HTTP status {status}")
        check_absence(urls[0], urls[-1])
        return None

    def put(self, name: str, data: Buffer, condition: Any = None) -> None:
        above = name.rpartition("/")[0]
        if above:
            self._filesystem.makedirs(above, exist_ok=True)
        self._filesystem.pipe_file(name, bytes(data))

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._filesystem.rm_file(name)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                pass

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        found = self._listed(prefix)
        return ([name for name, _, is_prefix in found if not is_prefix],
                [f"{name}/" for name, _, is_prefix in found if is_prefix])

    def list_all(self, prefix: str) -> Iterator[list[tuple[str, int | None]]]:
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
        """Return (name, size, whether it is a prefix) of all names right below a prefix."""
        self._filesystem.invalidate_cache()
        # The filesystem may spell names with another beginning.
        above = self._filesystem._strip_protocol(prefix.rstrip("/")).rstrip("/") + "/"
        try:
            items = self._filesystem.ls(above.rstrip("/"), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for item in items:
            name = item["name"].rstrip("/")
            # Some filesystems also list the file itself, or the marker of a directory.
            if above == "/" and not name.startswith("/"):
                name = "/" + name
            if name.startswith(above) and len(name) > len(above):
                found.append((prefix + name[len(above):], item["size"], item["type"] == "directory"))
        return found


async def _ask(filesystem, url):
    """Return the status of an object, and the URLs that led to it."""
    session = await filesystem.set_session()
    async with session.get(filesystem.encode_url(url), **filesystem.kwargs) as response:
        return response.status, [str(one.url) for one in (*response.history, response)]


def parts_of(source: Any) -> tuple[Any, str]:
    """Return the filesystem of a filesystem or mapper, and the name that precedes its keys."""
    if type(source).__name__ == "FSMap":
        return source.fs, source.root.rstrip("/")
    return source, ""
