"""`Group`, the user's handle on a group: a mapping of names to arrays and groups."""
from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, overload

from zcore.engine.array_binding import ArrayBinding
from zcore.engine.options import Options
from zcore.errors import InvalidKeyError, NodeExistsError, NodeNotFoundError, ZcoreError, warn
from zcore.hierarchy import consolidated, deletion, lookup, moving, new_nodes
from zcore.model.metadata import ArrayMetadata, unshared
from zcore.nodes.array import Array
from zcore.nodes.info import Info, drawn, type_name
from zcore.nodes.node import Node
from zcore.stores.base import n_at_once, n_changes, outcomes
from zcore.stores.keys import prefix_of
from zcore.text.arguments import as_bool, integer_of
from zcore.text.printable import plural, printable
from zcore.text.tried_names import OF_GROUP, add_tried, advising

# Members of a group that are looked for while those of many other groups are.
_MAX_FEW = 32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Never, Self, TypeVar, Unpack

    from zcore.engine.node_binding import GroupBinding
    from zcore.model.metadata import GroupMetadata
    from zcore.nodes.group_writer import GroupWriter
    from zcore.nodes.keywords import FilledKeywords, FormKeywords, GroupKeywords, MemberKeywords, TypedKeywords
    from zcore.typing import CacheSize, DTypeLike, Elements, Shape

    _Default = TypeVar("_Default")
    _Found = TypeVar("_Found")


class Group(Node):
    """A node of a hierarchy that holds arrays and other groups.

    Made by `zcore.open_group` and `zcore.create_group`. A mapping of names, or paths such as ``"2016/temperature"``, to
    arrays and groups, which are looked up in the store on access. ``group[name] = values`` creates an array of values,
    ``del group[name]`` deletes a member and everything below it.

    Examples
    --------
    >>> import zcore
    >>> g = zcore.create_group(zcore.MemoryStore(), attributes={"title": "weather"})
    >>> a = g.create_array("2016/temperature", shape=(4, 6), chunks=(2, 3), dtype="f4")
    >>> list(g), "2016/temperature" in g, g["2016"]["temperature"].shape, g.attrs["title"]
    (['2016'], True, (4, 6), 'weather')
    """

    __slots__ = ("_copy",)

    def __init__(self, binding: Any, copy: Any = None) -> None:
        super().__init__(binding)
        # The consolidated metadata for listing members, or None. A read-only handle also opens members from it.
        self._copy = copy

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata of the group as of the last look, with the consolidated metadata that is used for listing."""
        metadata = unshared(self._binding.metadata)
        if self._copy is None or metadata.consolidated is not None:
            return metadata
        return metadata.replace(consolidated=self._copy)     # Zarr v2 has it in a document of its own

    # members

    def _path_of(self, name):
        name = lookup.path_of(name, self._binding.format.name)
        if not name:
            raise NodeNotFoundError(f"{self._binding.describe()} has no member without a name", path="")
        return prefix_of(self._binding.path) + name

    def _find(self, name):
        if isinstance(name, str) and not name.strip("/"):
            return self._binding
        binding = self._binding
        path = self._path_of(name)
        if self._has_all_copies:
            found = consolidated.member_of(binding, self._copy, path[len(binding.prefix):])
            if found is not None:
                return found
        binding.see()
        return lookup.find(binding.store, path, None, binding.options)

    def __getitem__(self, name: str) -> Array | Group:
        """Return the member of this name, or at this path below the group; ``"/"`` is the group itself.

        As in zarr-python, a path that begins with ``/`` is one below the group, too. In h5py it would begin at the
        root; that is ``zcore.open_group(group.store)``.

        Raises
        ------
        NodeNotFoundError
            There is no such member; it is a KeyError.
        InvalidKeyError
            No node can have this name.
        MetadataError, UnsupportedError
            Its document breaks a rule, or needs a feature that zcore does not have.
        """
        found = self._find(name)
        if found is None:
            raise NodeNotFoundError(f"{self._binding.describe()} has no member {name!r}", path=self._path_of(name))
        return self._member(found)

    def get_array(self, path: str) -> Array:
        """Return the array at a path below the group. Raises : NodeNotFoundError, if there is none, or a group."""
        return self._member_of(path, Array, "array")

    def get_group(self, path: str) -> Group:
        """Return the group at a path below the group. Raises : NodeNotFoundError, if there is none, or an array."""
        return self._member_of(path, Group, "group")

    def _member_of(self, path, kind, what):
        found = self[path]
        if not isinstance(found, kind):
            raise NodeNotFoundError(f"{path!r} in {self._binding.describe()} is no {what}", path=self._path_of(path))
        return found

    def _member(self, found):
        if found is self._binding:
            return self
        if type(found) is ArrayBinding:
            return Array(found)
        path = found.path[len(self._binding.prefix):]
        return Group(found, self._copy.below(path) if self._copy is not None and path in self._copy else None)

    @overload
    def get(self, name: str, default: None = None) -> Array | Group | None: ...

    @overload
    def get(self, name: str, default: _Default) -> Array | Group | _Default: ...

    def get(self, name, default=None):
        """Return a member, or `default` if there is none of this name."""
        try:
            found = self._find(name)
        except InvalidKeyError:
            # No node can have this name.
            return default
        return default if found is None else self._member(found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        if self._copy is not None:
            yield from sorted({path.partition("/")[0] for path in self._copy})
            return
        self._binding.see()
        n = len(prefix_of(self._binding.path))
        for path in lookup.members(self._binding.store, self._binding.path):
            yield path[n:]

    @property
    def _has_all_copies(self):
        return self._copy is not None and self._binding.options.read_only

    def _names(self):
        """Return the names of possible members. Only opening them tells whether they are nodes."""
        if self._copy is not None:
            return iter(self)
        binding = self._binding
        binding.see()
        return [below[len(binding.prefix):-1] for below in lookup.may_be_nodes(binding.store, binding.path)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __array__(self, dtype: object = None, copy: object = None) -> Never:
        # NumPy would make an array of the names.
        raise TypeError(f"{self._binding.describe()} is a group, expected values; zcore.copy(group, store, "
                        "destination_path=path) copies it")

    def keys(self) -> Iterator[str]:
        """Iterate over the names of the members right below."""
        return iter(self)

    def values(self) -> Iterator[Array | Group]:
        """Iterate over the members right below."""
        return (node for _, node in self.members())

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        """Iterate over the (name, member) pairs right below."""
        return self.members()

    def members(self, max_depth: int | None = 0) -> Iterator[tuple[str, Array | Group]]:
        """Iterate over (path relative to the group, node), groups before their members.

        A member that cannot be opened (it is damaged or unreachable, or needs a feature that zcore does not have) is
        left out with a warning that gives the reason. Iterating over the group gives the names of all.

        In a service many members are looked for at a time, some before the loop comes to them: what another process
        changes meanwhile may not be seen.

        Parameters
        ----------
        max_depth : int or None
            0: the members right below; None: all levels.

        Raises
        ------
        ValueError, TypeError
            `max_depth` is invalid.

        Examples
        --------
        >>> import zcore
        >>> g = zcore.group()
        >>> a = g.create_array("a/b", shape=3, dtype="i4")
        >>> [path for path, node in g.members(None)]
        ['a', 'a/b']
        """
        return self._readable(self.walk(max_depth))

    def _readable(self, walked):
        for path, node in walked:
            if isinstance(node, ZcoreError):
                warn(f"{node}; it is left out of the members")
            else:
                yield path, node

    def walk(self, max_depth: int | None = None) -> Iterator[tuple[str, Array | Group | ZcoreError]]:
        """Iterate over (path relative to the group, node) like `members`, but over all levels, and leave none out.

        For a member that cannot be opened, the node is the `ZcoreError` with the reason.

        Examples
        --------
        >>> import zcore
        >>> g = zcore.group()
        >>> a = g.create_array("a/b", shape=3, dtype="i4")
        >>> g.store.set("a/b/zarr.json", b"{")
        >>> [(path, type(node).__name__) for path, node in g.walk()]
        [('a', 'Group'), ('a/b', 'MetadataError')]
        """
        _check_depth(max_depth)
        return self._walk(max_depth)

    def _walk(self, max_depth):
        way = [("", self._children(_goes_on(max_depth, 0)))]
        while way:
            prefix, children = way[-1]
            for name, node, looks in children:
                yield prefix + name, node
                if isinstance(node, Group) and _goes_on(max_depth, len(way) - 1):
                    way.append((f"{prefix}{name}/", node._children(_goes_on(max_depth, len(way)), looks)))
                    break
            else:
                way.pop()

    def _children(self, goes_on, looks=None):
        """Iterate over (name, node, `_looks` or None) of the members right below.

        For a member that cannot be opened, node is the error. `goes_on`: the members of the groups come next. Where
        answers take long, these are looked for in many groups at once.
        """
        children = self._opened(looks)
        most = n_at_once(self.store) if goes_on else 0
        if not most:
            for name, node in children:
                yield name, node, None
            return
        n, failure = 1, None
        while failure is None:
            ahead, n_before = [], n_changes()
            try:
                ahead += islice(children, n)
            except ZcoreError as error:
                failure = error
            if not ahead:
                break
            below = outcomes(self.store, Group._looks, [node for _, node in ahead if type(node) is Group])
            for name, node in ahead:
                if n_before != n_changes():
                    # The caller has changed something, perhaps this member.
                    for now in self._opened(None, [name]):
                        yield *now, None
                else:
                    yield name, node, next(below) if type(node) is Group else None
            n = min(2 * n, most)
        if failure is not None:
            raise failure

    def _opened(self, looks, names=None):
        for name, found in self._found(looks, names):
            if found is None or isinstance(found, InvalidKeyError):
                continue     # no node, a reserved name, or deleted meanwhile
            if isinstance(found, ZcoreError):
                lookup.pass_over_damage(found)
                yield name, found
                continue
            node = self._member(found)
            if type(node) is Group and node.store.folders.leads_up(node._binding.prefix):
                continue     # as in `lookup.members`
            yield name, node

    def _found(self, looks, names):
        """Iterate over (name, binding) of the members right below, or of `names`; None instead, or the error of one."""
        binding = self._binding
        if self._has_all_copies:
            for name in self._names() if names is None else names:
                try:
                    found = self._find(name)
                except ZcoreError as error:
                    found = error
                yield name, found
            return
        if isinstance(looks, ZcoreError):
            raise looks
        n_before, paths, known = looks or (None, None, None)
        if n_before != n_changes():
            paths, known = self._paths(names), None
        places = [*paths.values()]
        looked = None if known is None else self._while_unchanged(n_before, places, known)
        yield from zip(paths, lookup.find_each(binding.store, places, None, binding.options, looks=looked), strict=True)

    def _while_unchanged(self, n_before, paths, known):
        for i, looked in enumerate(known):
            if n_before != n_changes():
                yield from lookup.look_at_each(self.store, paths[i:], None)
                return
            yield looked

    def _looks(self):
        """Return all that `_found` needs to know, without a warning: another thread may call this.

        None if it does not ask, or for so many members at once.
        """
        n_before, paths = n_changes(), {} if self._has_all_copies else self._paths()
        if not 0 < len(paths) <= _MAX_FEW:
            return None
        return n_before, paths, [*lookup.look_at_each(self.store, [*paths.values()], None)]

    def _paths(self, names=None):
        """Return a dict of names, or of those of possible members, to their paths, without those no node can have."""
        paths = {}
        for name in filter(None, self._names() if names is None else names):
            try:
                paths[name] = self._path_of(name)
            except InvalidKeyError:
                pass
        return paths

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of `members`, `max_depth` levels deep; None counts all levels."""
        return sum(1 for _ in self.members(max_depth))

    @advising
    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Iterate over (name, array) of the arrays right below."""
        return ((name, node) for name, node in self.members() if isinstance(node, Array))

    @advising
    def groups(self) -> Iterator[tuple[str, Group]]:
        """Iterate over (name, group) of the groups right below."""
        return ((name, node) for name, node in self.members() if isinstance(node, Group))

    def array_keys(self) -> Iterator[str]:
        """Iterate over the names of the arrays right below."""
        return (name for name, _ in self.arrays())

    def array_values(self) -> Iterator[Array]:
        """Iterate over the arrays right below."""
        return (node for _, node in self.arrays())

    def group_keys(self) -> Iterator[str]:
        """Iterate over the names of the groups right below."""
        return (name for name, _ in self.groups())

    def group_values(self) -> Iterator[Group]:
        """Iterate over the groups right below."""
        return (node for _, node in self.groups())

    def visititems(self, function: Callable[[str, Array | Group], _Found | None]) -> _Found | None:
        """Call ``function(path, node)`` for all members below, until a result is not None, and return that result."""
        for path, node in self.members(None):
            result = function(path, node)
            if result is not None:
                return result
        return None

    @property
    def info(self) -> Info:
        """A description in several lines, an `Info`; reads nothing."""
        return Info({"path": self.name, "store": repr(self.store), "format": self.zarr_format,
                     "read-only": self.read_only})

    def info_complete(self) -> Info:
        """Return `info` with the number of members; costs a listing of all of them."""
        are_arrays = [isinstance(node, Array) for _, node in self.members(None)]
        n_arrays = sum(are_arrays)
        return Info({**self.info, "members": f"{plural(n_arrays, 'array')}, "
                                             f"{plural(len(are_arrays) - n_arrays, 'group')} below"})

    @advising
    def tree(self, max_depth: int | None = None) -> str:
        """Return the hierarchy below as text, one line per node; for a node that cannot be opened, the error.

        Parameters
        ----------
        max_depth : int, optional
            0 shows only the members right below; by default all levels.
        """
        pairs = self.walk(max_depth)
        return "\n".join([printable(self.name), *drawn((path, _line_of(path, node)) for path, node in pairs)])

    # changes

    @advising
    def create_array(self, name: str, **keywords: Unpack[MemberKeywords]) -> Array:
        """Create an array below, and missing groups between.

        Parameters
        ----------
        name : str
            A name, or a path below the group.
        **keywords
            As for `zcore.create_array`; defaults of the format and the options are those of the group.

        Raises
        ------
        NodeExistsError
            The node exists, and `overwrite` is false.
        ReadOnlyError
            The group was opened for reading.
        ValueError, TypeError, UnsupportedError
            The format cannot express the request.
        """
        return Array(self._create(new_nodes.create_array, name, keywords))

    def __setitem__(self, name: str, data: Elements) -> None:
        """Create an array that holds `data`. It replaces an array of that name, or what a deleted array left behind.

        Raises : NodeExistsError, if a group exists there, or nodes exist below: they would be lost.
        """
        found, path = self.get(name), self._path_of(name)
        if not isinstance(found, Array) and (found is not None or deletion.has_members(self.store, path)):
            raise NodeExistsError(f"there is a group at {path}, or there are nodes below; del it first", path=path)
        self.create_array(name, data=data, overwrite=True)

    @advising
    def empty(self, name: str, shape: Shape, *, dtype: DTypeLike = "f8", **keywords: Unpack[FilledKeywords]) -> Array:
        """Create an array without writing any elements.

        `name`, `shape`, `dtype` and `keywords` are those of `create_array`.
        """
        return self.create_array(name, shape=shape, dtype=dtype, **keywords)

    @advising
    def full(self, name: str, shape: Shape, fill_value: Any, *, dtype: DTypeLike = "f8",
             **keywords: Unpack[FormKeywords]) -> Array:
        """Create an array filled with `fill_value`; other parameters as for `empty`."""
        return self.empty(name, shape, dtype=dtype, fill_value=fill_value, **keywords)

    @advising
    def zeros(self, name: str, shape: Shape, *, dtype: DTypeLike = "f8", **keywords: Unpack[FormKeywords]) -> Array:
        """Create an array of zeros; `name`, `shape`, `dtype` and `keywords` as for `empty`."""
        return self.full(name, shape, new_nodes.zero_of(dtype), dtype=dtype, **keywords)

    @advising
    def ones(self, name: str, shape: Shape, **keywords: Unpack[TypedKeywords]) -> Array:
        """Create an array of ones; `name`, `shape` and `keywords` as for `empty`."""
        return self.full(name, shape, 1, **keywords)

    @advising
    def create_group(self, name: str, **keywords: Unpack[GroupKeywords]) -> Group:
        """Create a group below, and missing groups between; keywords and errors as for `create_array`."""
        return Group(self._create(new_nodes.create_group, name, keywords))

    def create_hierarchy(self, nodes: Mapping[str, ArrayMetadata | GroupMetadata], *,
                         overwrite: bool = False) -> Iterator[tuple[str, Array | Group]]:
        """Create arrays and groups below from their metadata; see `zcore.create_hierarchy`.

        Parameters
        ----------
        nodes : mapping of str to ArrayMetadata or GroupMetadata
            By path below the group.
        overwrite : bool
            Replace existing nodes.

        Returns
        -------
        iterator of (str, Array or Group)
        """
        binding = self._to_change()
        made = new_nodes.create_hierarchy(binding.store, binding.path, nodes, binding.options,
                                         overwrite=as_bool(overwrite, "overwrite"))
        return iter([(path, node_of(made_binding)) for path, made_binding in made])

    def _to_change(self):
        """Return the binding, to change members. The consolidated metadata are not used any more then."""
        self._binding.check_writable()
        self._copy = None
        return self._binding

    def _create(self, create, name, keywords):
        binding = self._to_change()
        options = binding.options
        if not keywords.keys().isdisjoint(Options.MEANT):
            options = options.changed({key: keywords.pop(key) for key in Options.MEANT if key in keywords})
        keywords.setdefault("zarr_format", binding.format.name)
        return create(binding.store, self._path_of(name), options, **keywords)

    @advising
    def require_array(self, name: str, *, shape: Shape, dtype: DTypeLike, **keywords: Unpack[FilledKeywords]) -> Array:
        """Return the array of this name; create it if there is none. Keywords as for `create_array`.

        Raises
        ------
        ArrayMismatchError
            The existing array has another shape or type.
        NodeExistsError
            A group has this name.
        """
        def check(found):
            lookup.check_is_asked_for(found._binding, shape, None, dtype, ..., f"; group[{name!r}] opens it as it is")

        return self._required(name, Array, lambda: self.create_array(name, shape=shape, dtype=dtype, **keywords), check)

    @advising
    def require_group(self, name: str, **keywords: Unpack[GroupKeywords]) -> Group:
        """Return the group of this name; create it if there is none.

        Raises : NodeExistsError, if an array has this name.
        """
        return self._required(name, Group, lambda: self.create_group(name, **keywords))

    @advising
    def create_dataset(self, name: str, shape: Shape | None = None, dtype: DTypeLike | None = None,
                       data: Elements | None = None, **keywords: Any) -> Array:
        """Create an array: the name that h5py and zarr-python 2 have for `create_array`, as it warns."""
        warn("create_dataset is create_array here", DeprecationWarning)
        return self.create_array(name, shape=shape, dtype=dtype, data=data, **keywords)

    @advising
    def require_dataset(self, name: str, shape: Shape, dtype: DTypeLike, **keywords: Any) -> Array:
        """Return an array, or create it: as `create_dataset`, for `require_array`."""
        warn("require_dataset is require_array here", DeprecationWarning)
        return self.require_array(name, shape=shape, dtype=dtype, **keywords)

    def clear(self) -> None:
        """Delete all members. Attributes stay."""
        for name in list(self):
            del self[name]

    def _required(self, name: str, kind: type[_Found], make: Callable[[], _Found],
                  check: Callable[[_Found], None] | None = None) -> _Found:
        """Return the member of this name; create it if there is none. Other processes may do the same."""
        path = self._path_of(name)

        def find():
            found = self.get(name)
            if found is None:
                return None
            if not isinstance(found, kind):
                raise NodeExistsError(f"{self.store.describe(path)} is no {kind.__name__.lower()}", path=path)
            if check is not None:
                check(found)
            return found

        self._binding.check_writable()
        return new_nodes.found_or_made(find, make, path)

    def writer(self, dimension: str, *, queue: CacheSize | None = None) -> GroupWriter:
        """Return a `GroupWriter`, which appends along a dimension to all arrays of this group that have it.

        Parameters
        ----------
        dimension : str
            A name among the ``dimension_names`` of the arrays, or in their attribute ``_ARRAY_DIMENSIONS``.
        queue : int or str, optional
            See `Array.writer`; for all arrays together.

        Raises
        ------
        NodeNotFoundError
            No array has the dimension.
        ValueError
            The arrays have different lengths along it.
        ReadOnlyError
            The group was opened for reading.

        Examples
        --------
        >>> import numpy as np, zcore
        >>> g = zcore.create_group(zcore.MemoryStore())
        >>> t = g.create_array("time", shape=(0,), chunks=(100,), dtype="f8", dimension_names=["time"])
        >>> x = g.create_array("x", shape=(0, 3), chunks=(10, 3), dtype="f4", dimension_names=["time", None])
        >>> with g.writer("time") as w:
        ...     for i in range(25):
        ...         w.append({"time": i / 2, "x": np.full(3, i, "f4")})
        >>> g["x"].shape, g["time"][24]
        ((25, 3), np.float64(12.0))
        """
        from zcore.nodes.group_writer import GroupWriter

        self._binding.check_writable()
        return GroupWriter(self, dimension, queue)

    @advising
    def move(self, source: str, destination: str) -> None:
        """Move the member `source` to another path below the group; create missing groups above it.

        In a directory, this is one rename.

        Raises
        ------
        NodeNotFoundError
            There is no such member.
        NodeExistsError
            Something exists at the destination, or the destination lies below the source.
        """
        binding = self._to_change()
        moving.move(binding.store, self._path_of(source), self._path_of(destination), binding.options)

    def __delitem__(self, name: str) -> None:
        """Delete a member and all nodes below it, readable or not.

        If the member is a link, reachable or not, only the link is removed, never its target.

        Raises : NodeNotFoundError, if there is no such member. Nodes may be below a name that is none: it names them.
        """
        store, path = self._to_change().store, self._path_of(name)
        # Not opened, so that a damaged member can be deleted, too.
        if not deletion.delete(store, path, self._binding.options):
            raise NodeNotFoundError(f"{self._binding.describe()} has no member {name!r}: "
                                    f"{deletion.no_node(store, path)}", path=path)

    def refresh(self) -> Self:
        """Read the group's document again, and list its members from the store. Return the group."""
        self._copy = None
        return super().refresh()

    # protocols of Python and IPython

    def _repr_html_(self):
        """Return the hierarchy for a notebook: a collapsible tree, limited to a readable size."""
        from zcore.nodes.html import group_html

        return group_html(self)

    def _ipython_key_completions_(self):
        """Return the names of the members, for completion behind ``group["``."""
        return list(self)


def node_of(binding: ArrayBinding | GroupBinding) -> Array | Group:
    """Return the `Array` or `Group` of a binding."""
    return Array(binding) if type(binding) is ArrayBinding else Group(binding)


def _check_depth(max_depth):
    """Raise unless a value is valid for `max_depth=`."""
    if max_depth is not None and integer_of(max_depth) is None:
        raise TypeError(f"max_depth is {max_depth!r:.60}, expected an integer or None")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth is {max_depth!r:.60}, expected 0 or more, or None for all")


def _goes_on(max_depth, depth):
    """Return whether `max_depth` includes the nodes one level below `depth`."""
    return max_depth is None or depth < max_depth


def _line_of(path, node):
    """Return the line of a node in a tree. Control characters in its name are escaped."""
    text = printable(path.rpartition("/")[2])
    if isinstance(node, ZcoreError):
        return f"{text} ({type(node).__name__})"
    return text if isinstance(node, Group) else f"{text} {node.shape} {type_name(node.dtype)}"


add_tried(Group, OF_GROUP)
