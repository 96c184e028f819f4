"""The attributes of a node: a mapping that is read from and written to the store."""
from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from zcore.hierarchy import attributes
from zcore.model.value import copied
from zcore.text.tried_names import OF_ATTRIBUTES, add_tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Attributes(MutableMapping[str, Any]):
    """User attributes: names and JSON values.

    Every access reads the stored attributes anew. Every change is one atomic write under the node's lock, so two
    writers that set different attributes lose none. `update` with several attributes is one write.

    NaN and infinities are no JSON. The older formats have always stored them. In Zarr v3, setting one is a ValueError;
    one from another program is kept until its attribute is changed.
    """

    __slots__ = ("_binding",)

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def asdict(self) -> dict[str, Any]:
        """Return all attributes as a new dict, with one read."""
        return attributes.read_attributes(self._binding)

    def as_opened(self) -> dict[str, Any]:
        """Return all attributes from the handle's last look at the node, as a new dict.

        That look may have been at consolidated metadata. If it found no attributes, they are read now.
        """
        view = self._binding.view
        known = view.attributes if view.metadata.attributes is None else view.metadata.attributes
        if known is None:
            return self.asdict()
        # All handles on the node may share them.
        return {name: copied(value) for name, value in known.items()}

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, or `default` if there is none of this name."""
        # `Mapping.get` would treat the error of a deleted node, which is a KeyError, as a missing name.
        return self.asdict().get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def __contains__(self, name: object) -> bool:
        return name in self.asdict()

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several attributes in one write; same arguments as `dict.update`."""
        self.change(dict(*args, **kwargs))

    def change(self, new: Mapping[str, Any], gone: Iterable[str] = ()) -> None:
        """Set attributes and remove others in one write.

        Parameters
        ----------
        new : mapping
            Names and values to set.
        gone : iterable of str
            Names to remove.

        Raises
        ------
        KeyError
            One of `gone` does not exist; nothing is changed.
        """
        new, gone = dict(new), list(gone)

        def change(attributes):
            for name in gone:
                del attributes[name]
            attributes.update(new)
        self._change(change)

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replace all attributes by those of a mapping in one write."""
        new = dict(attributes)

        def change(old):
            old.clear()
            old.update(new)
        self._change(change)

    def clear(self) -> None:
        """Remove all attributes in one write."""
        self.put({})

    def pop(self, name: str, *default: Any) -> Any:
        """Remove an attribute and return its value, or `default` if there is none."""
        return self._change(lambda attributes: attributes.pop(name, *default))

    def popitem(self) -> tuple[str, Any]:
        """Remove an attribute and return its name and value."""
        return self._change(dict.popitem)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return an attribute; set it to `default` first if there is none."""
        return self._change(lambda attributes: attributes.setdefault(name, default))

    def _change(self, change):
        self._binding.check_writable()
        return attributes.change_attributes(self._binding, change)

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"


add_tried(Attributes, OF_ATTRIBUTES)
