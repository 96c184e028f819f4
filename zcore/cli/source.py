"""Where a command's data come from: matplotlib's elevation model, or a file of the user's. Nothing is unpickled."""
import os

import numpy as np

ELEVATION = "jacksboro_fault_dem.npz"


class Source:
    """Data and what is known of them.

    Attributes
    ----------
    name : str
        Of the file, without directory.
    title : str
        Of the data, for people.
    data : ndarray
        Mapped from its file where that is possible.
    quantity : str
        What the values are.
    is_image : bool
        The last dimension, if there are three, is colour.
    """

    def __init__(self, name, data, *, title=None, quantity="value", is_image=False):
        self.name = name
        self.data = data
        self.title = title or name
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
        It takes matplotlib to read it, which is not installed.
    """
    if path is None:
        if array is not None:
            raise ValueError("--array names an array of an .npz file, and there is none")
        return _elevation()
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} is not a file")
    name = os.path.basename(path)
    ending = os.path.splitext(name)[1].lower()
    if ending == ".npz":
        return _from_npz(path, name, array)
    if array is not None:
        raise ValueError(f"--array names an array of an .npz file, which {path} is not")
    if ending == ".npy":
        # Mapped, not read: it may be larger than the memory.
        data = _load(path, path, "r")
        if not isinstance(data, np.ndarray):
            raise ValueError(f"{path} is not an .npy file")
        return Source(name, data)
    return Source(name, _read_image(path), is_image=True)


def _elevation():
    matplotlib_needed("the elevation model")
    from matplotlib import cbook

    try:
        path = cbook.get_sample_data(ELEVATION, asfileobj=False)
        with np.load(path, allow_pickle=False) as arrays:
            data = arrays["elevation"]
    except (OSError, KeyError) as exc:
        raise FileNotFoundError(f"this matplotlib comes without {ELEVATION}; "
                                "`zcore demo PATH` takes data of your own") from exc
    return Source(ELEVATION, data, title=f"{ELEVATION}, the Jacksboro fault in Tennessee", quantity="elevation (m)")


def _from_npz(path, name, array):
    # Opened here: numpy.load leaves a file open that it cannot read.
    with open(path, "rb") as file:
        arrays = _load(path, file)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError(f"{path} is not an .npz file")
        if not arrays.files:
            raise ValueError(f"{path} holds no array")
        if array is None:
            array = arrays.files[0]
        elif array not in arrays.files:
            raise ValueError(f"{path} has no array {array!r}; it has {', '.join(arrays.files)}")
        try:
            data = arrays[array]
        except Exception as exc:
            raise ValueError(f"cannot read {array!r} of {path}: {exc}") from exc
        if not isinstance(data, np.ndarray):
            raise ValueError(f"{array!r} of {path} is not an array")
    return Source(name, data, title=f"{name}, {array}", quantity=array)


def _load(path, file, mmap_mode=None):
    try:
        return np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    except Exception as exc:
        # numpy lets errors of struct, tokenize and zipfile through.
        raise ValueError(f"cannot read {path}: {exc}") from exc


def _read_image(path):
    matplotlib_needed("an image")
    from matplotlib import image

    try:
        return np.asarray(image.imread(path))
    except Exception as exc:
        # Whatever the reader of some image format may raise.
        raise ValueError(f"cannot read {path} as an image (nor is it .npy or .npz): {exc}") from exc


def matplotlib_needed(what):
    """Raise ModuleNotFoundError with a sentence that helps, if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as exc:
        raise ModuleNotFoundError(f"{what} needs matplotlib, which comes with the extra zcore[demo]: "
                                  "python -m pip install \"zcore[demo]\"") from exc
