"""The xarray engine ``"zcore"``."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import xarray
from xarray.backends import BackendEntrypoint
from xarray.backends.common import _decode_variable_name
from xarray.conventions import decode_cf_variables

import zcore
from zcore.errors import warn
from zcore.hierarchy.lookup import path_of
from zcore.model.value import check_kind
from zcore.nodes.appending import home_of, length_before
from zcore.stores.base import outcomes
from zcore.stores.openers import as_path
from zcore.text.arguments import as_optional_bool
from zcore.xarray.variables import Dimensions, StoredVariable, shown, variable_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from zcore.stores.base import StoreLike
    from zcore.typing import CacheSize, Format, Missing

_ENDINGS = (".asdf", ".json", ".ozx", ".parq", ".parquet", ".zarr", ".zip")
_DOCUMENTS = ("__zmeta__", "zarr.json", ".zgroup", ".zarray", ".zmetadata")


class ZcoreBackend(BackendEntrypoint):
    """Opens what `zcore.open` opens as datasets: Zarr v2 and v3, ``__zmeta__``, zip, reference sets, ASDF, services."""

    description: str = "Open Zarr, reference sets, ASDF and __zmeta__ by zcore"
    supports_groups: bool = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether something looks like what zcore opens: its name, or the documents in a directory."""
        if isinstance(filename_or_obj, (zcore.Group, zcore.Array, zcore.storage.Store)):
            return True
        if (place := as_path(filename_or_obj)) is None:
            return False
        try:
            name = place.partition("?")[0] if "://" in place else place
            if name.rstrip("/").lower().endswith(_ENDINGS):
                return True
            return any([os.path.isfile(os.path.join(place, document)) for document in _DOCUMENTS])
        except (OSError, TypeError, ValueError):
            return False

    def open_dataset(self, filename_or_obj: Any, *, mask_and_scale: bool | Mapping[str, bool] = True,
                     decode_times: Any = True, concat_characters: bool | Mapping[str, bool] = True,
                     decode_coords: Any = True, drop_variables: str | Iterable[str] | None = None,
                     use_cftime: Any = None, decode_timedelta: Any = None, group: str | None = None,
                     consolidated: bool | None = None, storage_options: Mapping[str, Any] | None = None,
                     zarr_format: Format | None = None, use_zarr_fill_value_as_mask: bool | None = None,
                     missing: Missing = "fill", threads: int | None = None, strict: bool = True,
                     cache_nbytes: CacheSize | None = None) -> xarray.Dataset:
        """Return the arrays of a group as a dataset; a single array is its only variable.

        Parameters
        ----------
        filename_or_obj : object
            What `zcore.open` takes, or an open `zcore.Group` or `zcore.Array`.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta
            See `xarray.open_dataset`.
        drop_variables : str or iterable of str, optional
            Arrays that are left out, damaged ones too.
        group : str, optional
            Path of the group, the root by default.
        consolidated : bool, optional
            The `use_consolidated` of `zcore.open_group`.
        storage_options : dict, optional
            Options of `zcore.RemoteStore`.
        zarr_format : {2, 3, "zmeta"}, optional
            The group must have this format.
        use_zarr_fill_value_as_mask : bool, optional
            See `xarray.open_zarr`; by default in Zarr v2 alone.
        missing, threads, strict
            See `zcore.open`.
        cache_nbytes : int or str, optional
            The `cache` of `zcore.open`; xarray has a keyword of that name.

        Raises
        ------
        zcore.NodeNotFoundError
            There is no such group; it is a FileNotFoundError.
        zcore.MetadataError, zcore.UnsupportedError
            An array cannot be opened. `drop_variables` leaves it out.
        ValueError
            A dimension has two lengths.
        """
        options = {"missing": missing, "threads": threads, "strict": strict, "cache": cache_nbytes}
        node = _opened(filename_or_obj, group, consolidated, storage_options, zarr_format, options)
        dropped = _names(drop_variables)
        sources, _ = members_of(node, filename_or_obj, dropped)
        return _dataset(node, sources, Dimensions(sources.items()), use_zarr_fill_value_as_mask, {
            "mask_and_scale": mask_and_scale, "decode_times": decode_times, "concat_characters": concat_characters,
            "decode_coords": decode_coords, "drop_variables": drop_variables, "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta})

    def open_groups_as_dict(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None,
                            group: str | None = None, consolidated: bool | None = None,
                            storage_options: Mapping[str, Any] | None = None, zarr_format: Format | None = None,
                            use_zarr_fill_value_as_mask: bool | None = None, missing: Missing = "fill",
                            threads: int | None = None, strict: bool = True, cache_nbytes: CacheSize | None = None,
                            **decoders: Any) -> dict[str, xarray.Dataset]:
        """Return a group and all groups below it as datasets, by their paths; parameters as for `open_dataset`.

        Dimensions without names are named alike in all of them.
        """
        options = {"missing": missing, "threads": threads, "strict": strict, "cache": cache_nbytes}
        top = _opened(filename_or_obj, group, consolidated, storage_options, zarr_format, options)
        dropped = _names(drop_variables)
        found = {}
        waiting = [("", top)]
        while waiting:
            path, node = waiting.pop()
            sources, groups = members_of(node, filename_or_obj, dropped)
            found[path] = node, sources
            waiting += [(f"{path}/{name}", member) for name, member in reversed(groups.items())]
        dimensions = Dimensions([item for _, sources in found.values() for item in sources.items()])
        decoders["drop_variables"] = drop_variables
        return {_path(path, group): _dataset(node, sources, dimensions, use_zarr_fill_value_as_mask, decoders)
                for path, (node, sources) in found.items()}

    def open_datatree(self, filename_or_obj: Any, **keywords: Any) -> xarray.DataTree:
        """Return a group and all groups below it as an `xarray.DataTree`; keywords as for `open_groups_as_dict`."""
        return xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **keywords))


def _dataset(node, sources, dimensions, mask_fill, decoders):
    """Return the dataset of a group's arrays, or of one array alone."""
    mask_fill = as_optional_bool(mask_fill, "use_zarr_fill_value_as_mask")
    variables = {_decode_variable_name(name): variable_of(source, dimensions.of(source.array), mask_fill)
                 for name, source in sources.items()}
    _cut_to_one_length(variables, dict(zip(variables, sources.values(), strict=True)))
    attributes = {} if isinstance(node, zcore.Array) else shown(node.attrs.as_opened())
    return _assembled(*decode_cf_variables(variables, attributes, **decoders))


def _cut_to_one_length(variables, sources):
    """Leave out what an append has not ended with, where arrays have two lengths along a dimension."""
    lengths = {}
    for name, variable in variables.items():
        for dim, length in variable.sizes.items():
            lengths.setdefault(dim, {})[name] = length
    for dim, found in lengths.items():
        if len(set(found.values())) > 1:
            home = sources[home_of({name: variables[name].dims for name in found}, dim)].array
            length = length_before(home, dim)
            if length != min(found.values()):
                continue     # not by an append of this module
            warn(f"{home.store.describe(home.path.rpartition('/')[0])}: an append along {dim!r} is at work, or was cut "
                 f"off: the dataset has the length {length} from before; the next zcore.xarray.to_zarr with "
                 f"append_dim={dim!r} takes the rest away")
            for name in found:
                variables[name] = variables[name].isel({dim: slice(length)})


def _assembled(variables, attributes, coord_names):
    """Return the dataset of decoded variables, without indexes, which xarray makes of the coordinates later."""
    coords = {name: variable for name, variable in variables.items()
              if name in coord_names or variable.dims == (name,)}
    others = {name: variable for name, variable in variables.items() if name not in coords}
    try:
        return xarray.Dataset(others, xarray.Coordinates(coords, indexes={}), attributes)
    except ValueError as error:
        sizes = {name: dict(variable.sizes) for name, variable in variables.items()}
        error.add_note(f"the arrays are {sizes}; if an append was cut off, zcore.open(store, mode='r+')[name]"
                       ".resize(shape) makes them equally long; drop_variables opens the dataset without some of them")
        raise


def _opened(place, path, consolidated, storage_options, zarr_format, options):
    """Return the group, or the array, at a path of what a caller names."""
    path = path_of(path)
    consolidated = as_optional_bool(consolidated, "consolidated")
    if isinstance(place, zcore.Group):
        return place[path] if path else place
    if isinstance(place, zcore.Array):
        if path:
            raise zcore.NodeNotFoundError(f"{place!r:.200} is an array, which holds no {path!r:.200}", path=path)
        return place
    place = place_of(place, storage_options)
    if consolidated is False:
        try:
            return zcore.open_group(place, path=path, zarr_format=zarr_format, use_consolidated=False, **options)
        except zcore.NodeNotFoundError:
            pass     # an array, or the error is below
    try:
        node = zcore.open(place, path=path, zarr_format=zarr_format, **options)
    except zcore.NodeNotFoundError as error:
        error.message = error.message.partition("; zcore.open ")[0]     # xarray's function makes nothing
        raise
    if isinstance(node, zcore.Array) or consolidated is None or (
            consolidated and node.metadata.consolidated is not None):
        return node
    return zcore.open_group(node.store, path=path, zarr_format=zarr_format, use_consolidated=consolidated, **options)


def place_of(place: Any, storage_options: Mapping[str, Any] | None, read_only: bool = True) -> StoreLike:
    """Return what `zcore.open` takes for what a caller of xarray names."""
    path = as_path(place)
    check_kind(storage_options, "storage_options", (Mapping,), "a mapping")
    if storage_options is not None:
        return zcore.RemoteStore(place if path is None else path, read_only=read_only, **storage_options)
    if path is not None and "://" not in path and not path.startswith("file:"):
        # Absolute: a pickle of the dataset may be opened by a process that runs elsewhere.
        return os.path.abspath(os.path.expanduser(path))
    return place if path is None else path


def members_of(node: zcore.Group | zcore.Array, place: object = None,
               dropped: Collection[str] = ()) -> tuple[dict[str, StoredVariable], dict[str, zcore.Group]]:
    """Return the arrays of a group, each a `StoredVariable`, and the groups in it: two dicts by their names.

    A node that is an array is the only one, by a name that is found for it.

    Raises : ZcoreError, if a member cannot be opened and is not among the `dropped` names.
    """
    if isinstance(node, zcore.Array):
        return {_name_of(node, place): _with_attributes(node)}, {}
    sources, groups = {}, {}
    for name, member in _opened_members(node):
        if isinstance(member, zcore.ZcoreError):
            if name in dropped:
                continue
            member.add_note(f"drop_variables={name!r} opens the dataset without it")
            raise member
        if isinstance(member, zcore.Group):
            groups[name] = member
        elif name not in dropped:
            sources[name] = member
    return sources, groups


def _opened_members(group):
    """Iterate over (name, member): a `StoredVariable` for an array, a group, or the error of one that is damaged."""
    members = dict(group.walk(0))
    # In Zarr v2 the attributes of each are another request.
    return zip(members, outcomes(group.store, _with_attributes, [*members.values()]), strict=True)


def _with_attributes(member):
    return StoredVariable(member, member.attrs.as_opened()) if isinstance(member, zcore.Array) else member


def _name_of(array, place):
    """Return the name of a variable for an array that is no member of a group: that of its path, or of the file."""
    name = array.basename
    if not name and (path := as_path(place)) is not None:
        name = os.path.splitext(os.path.basename(path.rstrip("/")))[0]
    return name or "array"


def _names(names):
    """Return the set of the names that `drop_variables` has."""
    check_kind(names, "drop_variables", (Iterable,), "a name or names")
    return set() if names is None else {names} if isinstance(names, str) else set(names)


def _path(path, group):
    """Return how xarray's Zarr backend names a group of a tree: of all groups absolutely, of a part relatively."""
    return path.lstrip("/") or "." if group else path or "/"
