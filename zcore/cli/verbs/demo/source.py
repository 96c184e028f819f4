"""Where a command's data come from: matplotlib's elevation model, or a file of the user's. Nothing is unpickled."""
import contextlib
import math
import os
import stat
import warnings
import zipfile

import numpy as np

from zcore.cli.show.drawing import missing_extra
from zcore.stores import openers

ELEVATION = "jacksboro_fault_dem.npz"
KINDS = ".npy, .npz or an image"
MAX_LISTED_NAMES = 8
# Of Pillow's pixels, those that NumPy shows as they are stored; others (palettes, colours of print) become RGB.
PLAIN_MODES = ("1", "L", "LA", "I", "F", "RGB", "RGBA")
PLAIN_16_BITS = "I;16"


class Source:
    """Data and what is known of them.

    Attributes
    ----------
    name : str
        Of the file, without directory.
    title : str
        Of the data, for people.
    note : str or None
        What of the file was taken, where it has more.
    data : ndarray
        Mapped from its file where that is possible.
    quantity : str
        What the values are.
    is_image : bool
        The data are dots of a picture; a third dimension is colour.
    """

    def __init__(self, name, data, *, title=None, note=None, quantity="value", is_image=False):
        self.name = name
        self.data = data
        self.title = title or name
        self.note = note
        self.quantity = quantity
        self.is_image = is_image


def load(path=None, array=None):
    """Return the `Source` of a file, or of the elevation model when there is no path.

    Parameters
    ----------
    path : str, optional
        ``.npy``, ``.npz``, or an image.
    array : str, optional
        Name in an ``.npz`` file; the first array by default.

    Raises
    ------
    OSError, ValueError
        The file is missing, damaged, empty, or holds Python objects.
    ModuleNotFoundError
        It takes matplotlib or Pillow to read it, which is not installed.
    """
    name = ELEVATION if path is None else os.path.basename(path)
    # Of a file that is missing the name alone tells.
    kind = None if path is None else openers.kind_of(path) or openers.named_kind(path)
    if array is not None and kind is not openers.NPZ:
        raise ValueError("--array names an array of an .npz file, and PATH is not one")
    with warnings.catch_warnings():
        # Readers warn of old headers and odd metadata, which nobody has asked for.
        warnings.simplefilter("ignore")
        if path is None:
            return _elevation()
        _check_file(path)
        if kind is openers.NPZ:
            return _from_npz(path, name, array)
        if kind is openers.NPY:
            return _from_npy(path, name)
        return _from_image(path, name)


def _check_file(path):
    """Refuse what is not a file, as plainly as may be; a file that is missing is the system's own error."""
    if "://" in path:
        raise ValueError(f"{path!r} is a URL; PATH names a file of this machine: {KINDS}")
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path!r} is a directory; PATH names a file: {KINDS}")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path!r} is not a regular file; PATH names a file: {KINDS}")


@contextlib.contextmanager
def _reading(what):
    """Say of whatever a reader raises what was read; what the system refuses stays as it is.

    Readers let errors of struct, tokenize, zlib and others through.
    """
    try:
        yield
    except Exception as exc:
        if isinstance(exc, OSError) and exc.errno is not None:
            raise
        raise ValueError(f"{what}: {exc}") from exc


def _elevation():
    try:
        from matplotlib import cbook
    except ModuleNotFoundError as exc:
        raise missing_extra("the elevation model", "matplotlib") from exc
    try:
        path = cbook.get_sample_data(ELEVATION, asfileobj=False)
        with np.load(path, allow_pickle=False) as arrays:
            data = arrays["elevation"]
    except (OSError, KeyError) as exc:
        raise FileNotFoundError(f"this matplotlib comes without {ELEVATION}; "
                                "`zcore demo PATH` takes data of your own") from exc
    return Source(ELEVATION, data, title=f"{ELEVATION}, the Jacksboro fault in Tennessee", quantity="elevation (m)")


def _from_npy(path, name):
    with open(path, "rb") as file, _reading(f"cannot read {path!r}"):
        _check_npy(file, os.fstat(file.fileno()).st_size)
        # Mapped, not read: it may be larger than the memory.
        return Source(name, np.load(path, mmap_mode="r", allow_pickle=False))


def _from_npz(path, name, array):
    with open(path, "rb") as file, _reading(f"cannot read {path!r}"), zipfile.ZipFile(file) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist() if member.endswith(".npy")}
        if not members:
            raise ValueError("it holds no array")
        if array is None:
            array = next(iter(members))
        if array not in members:
            raise ValueError(f"it has no array {array!r}; it has {_listed(members)}")
        with _reading(f"array {array!r}"):
            with archive.open(members[array]) as member:
                _check_npy(member, archive.getinfo(members[array]).file_size)
            with archive.open(members[array]) as member:
                data = np.lib.format.read_array(member, allow_pickle=False)
    note = f"one of {len(members)} arrays: {_listed(members)}; --array takes another" if len(members) > 1 else None
    return Source(name, data, title=f"{name}, {array}", note=note, quantity=array)


def _listed(names):
    return ", ".join([*list(names)[:MAX_LISTED_NAMES], *["…"] * (len(names) > MAX_LISTED_NAMES)])


def _check_npy(file, n_bytes):
    """Refuse a file of `n_bytes` that is not of the ``.npy`` format, is cut off, or would have to be unpickled.

    NumPy's own errors advise to unpickle, and it allocates what the header asks for.

    Notes : NEP 1, "Format Specification, Version 1.0".
    """
    form = np.lib.format
    if file.read(len(form.MAGIC_PREFIX)) != form.MAGIC_PREFIX:
        raise ValueError(f"this is not an .npy array, which begins with {form.MAGIC_PREFIX}")
    file.seek(0)
    version = form.read_magic(file)
    # Version 3 differs from version 2 in the encoding of the names of fields alone.
    shape, _, dtype = (form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0)(file)
    if dtype.hasobject:
        raise ValueError("its elements are Python objects, stored as a pickle; none is ever loaded, as it may run any "
                         "program")
    expected, found = math.prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if found < expected:
        raise ValueError(f"its header announces elements of {expected} bytes, found {found}")


def _from_image(path, name):
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as exc:
        raise missing_extra("an image", "Pillow") from exc
    with open(path, "rb") as file, _reading(f"cannot read {path!r}"):
        try:
            image = Image.open(file)
        except UnidentifiedImageError as exc:
            raise ValueError("this is neither .npy nor .npz, nor an image that Pillow knows") from exc
        # Before the dots are decoded, when the image forgets how they were stored.
        note = _what_is_left_out(image)
        if image.mode == "P":
            image = image.convert()
        elif image.mode not in PLAIN_MODES and not image.mode.startswith(PLAIN_16_BITS):
            image = image.convert("RGBA" if image.mode.endswith(("A", "a")) else "RGB")
        return Source(name, np.asarray(image), note=note, is_image=True)


def _what_is_left_out(image):
    """Return what of an image file does not reach the array, or None."""
    if getattr(image, "is_animated", False):
        return "the first of its frames"
    # As the dots lie in the file: "RGB;16B" are 16 bits a colour, of which Pillow keeps 8.
    stored = [str(arguments[0] if isinstance(arguments, tuple) else arguments) for *_, arguments in image.tile]
    if not image.mode.startswith(PLAIN_16_BITS) and any(";16" in mode for mode in stored):
        return "8 of its 16 bits a colour"
    return None
