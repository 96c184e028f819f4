"""The data of the demo: matplotlib's elevation model, or a file of the user. Nothing is unpickled."""
from __future__ import annotations

import contextlib
import os
import stat
import warnings
import zipfile
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import Needing, ZcoreError
from zcore.stores import openers
from zcore.tools.files.numpy import NumpySource
from zcore.tools.source import SourceArray

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

ELEVATION = "jacksboro_fault_dem.npz"
KINDS = ".npy, .npz or an image"
MAX_LISTED_NAMES = 8
# Pillow's modes that NumPy shows as they are stored. Others (palettes, colours of print) become RGB.
PLAIN_MODES = ("1", "L", "LA", "I", "F", "RGB", "RGBA")
PLAIN_16_BITS = "I;16"


class DemoData:
    """Data with their names.

    Attributes
    ----------
    name : str
        Of the file, without directory.
    title : str
        Of the data, for people.
    note : str or None
        Which part of the file was taken, where it has more.
    data : ndarray
        Mapped from its file where that is possible.
    quantity : str
        The name of the values.
    is_image : bool
        The data are dots of a picture; a third dimension is colour.
    """

    def __init__(self, name: str, data: npt.NDArray[Any], *, title: str | None = None, note: str | None = None,
                 quantity: str = "value", is_image: bool = False) -> None:
        self.name = name
        self.data = data
        self.title: str = title or name
        self.note = note
        self.quantity = quantity
        self.is_image = is_image


def load(path: str | None = None, array: str | None = None) -> DemoData:
    """Return the `DemoData` of a file, or of the elevation model when there is no path.

    Parameters
    ----------
    path : str, optional
        ``.npy``, ``.npz``, or an image.
    array : str, optional
        Name in an ``.npz`` file; the first array by default.

    Raises
    ------
    OSError, ValueError, UnsupportedError
        The file is missing, damaged, empty, or holds Python objects; or reading it takes matplotlib or Pillow, which is
        not installed or broken.
    """
    # If the file is missing, its name alone tells.
    kind = None if path is None else openers.kind_of(path) or openers.named_kind(path)
    if array is not None and kind is not openers.NPZ:
        raise ValueError("--array names an array of an .npz file, and PATH is not one")
    with warnings.catch_warnings():
        # Readers warn of old headers and odd metadata, which do not matter here.
        warnings.simplefilter("ignore")
        if path is None:
            return _elevation()
        _check_file(path)
        name = os.path.basename(path)
        if kind is openers.NPZ:
            return _from_npz(path, name, array)
        if kind is openers.NPY:
            return DemoData(name, _array_in(path, kind))
        return _from_image(path, name)


def _check_file(path):
    """Raise an error for anything but a file that can be opened; for a missing file the system's own."""
    if "://" in path:
        raise ValueError(f"{path!r} is a URL; PATH names a file of this machine: {KINDS}")
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path!r} is a directory; PATH names a file: {KINDS}")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path!r} is not a regular file; PATH names a file: {KINDS}")
    with open(path, "rb"):
        pass


@contextlib.contextmanager
def _reading(path):
    """Turn any error of a reader into a ValueError that names the file. Errors of zcore and the system stay.

    Readers let errors of struct, tokenize, zlib and others through.
    """
    try:
        yield
    except Exception as exc:
        if isinstance(exc, ZcoreError) or isinstance(exc, OSError) and exc.errno is not None:
            raise
        raise ValueError(f"cannot read {path!r}: {exc}") from exc


def _elevation():
    with Needing("the elevation model needs", "matplotlib", "demo", "the elevation model"):
        from matplotlib import cbook
    try:
        data = _array_in(cbook.get_sample_data(ELEVATION, asfileobj=False), openers.NPZ, "elevation")
    except OSError as exc:
        raise FileNotFoundError(f"this matplotlib comes without {ELEVATION}; "
                                "`zcore demo PATH` takes data of your own") from exc
    return DemoData(ELEVATION, data, title=f"{ELEVATION}, the Jacksboro fault in Tennessee", quantity="elevation (m)")


def _array_in(path, kind, name=""):
    """Return an array of a file of NumPy, whose header was checked."""
    with NumpySource(path, name, None, None, kind) as source:
        ((_, found),) = source.nodes
        if kind is openers.NPY:
            # Mapped, not read: it may be larger than the memory.
            return np.load(path, mmap_mode="r", allow_pickle=False)
        assert isinstance(found, SourceArray)
        data = np.empty(found.shape, found.dtype)
        found.read((0,) * data.ndim, data)
        return data


def _from_npz(path, name, array):
    with _reading(path):
        with zipfile.ZipFile(path) as archive:
            names = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
        if not names:
            raise ValueError("it holds no array")
        array = names[0] if array is None else array
        listed = ", ".join([*names[:MAX_LISTED_NAMES], *["…"] * (len(names) > MAX_LISTED_NAMES)])
        if array not in names:
            raise ValueError(f"it has no array {array!r}; it has {listed}")
        data = _array_in(path, openers.NPZ, array)
    note = f"one of {len(names)} arrays: {listed}; --array takes another" if len(names) > 1 else None
    return DemoData(name, data, title=f"{name}, {array}", note=note, quantity=array)


def _from_image(path, name):
    with Needing("an image needs", "PIL", "demo", "images", "Pillow"):
        from PIL import Image, UnidentifiedImageError
    with open(path, "rb") as file, _reading(path):
        try:
            image = Image.open(file)
        except UnidentifiedImageError as exc:
            raise ValueError("this is neither .npy nor .npz, nor an image that Pillow knows") from exc
        # Before the dots are decoded: then the image forgets how they were stored.
        note = _left_out(image)
        if image.mode == "P":
            image = image.convert()
        elif image.mode not in PLAIN_MODES and not image.mode.startswith(PLAIN_16_BITS):
            image = image.convert("RGBA" if image.mode.endswith(("A", "a")) else "RGB")
        return DemoData(name, np.asarray(image), note=note, is_image=True)


def _left_out(image):
    """Return which part of an image file the array holds, or None for all of it."""
    if getattr(image, "is_animated", False):
        return "the first of its frames"
    # As the dots lie in the file: "RGB;16B" are 16 bits a colour, of which Pillow keeps 8.
    stored = [str(arguments[0] if isinstance(arguments, tuple) else arguments) for *_, arguments in image.tile]
    if not image.mode.startswith(PLAIN_16_BITS) and any(";16" in mode for mode in stored):
        return "8 of its 16 bits a colour"
    return None
