"""The one spelling of a base directory: both flavours on any system."""
import pytest

import zcore.asdf
from tests.each import each
from zcore.trust.base_path import POSIX, WINDOWS, absolute_base, file_path

CWD = {POSIX: "/home/user", WINDOWS: "D:\\work"}


@each("flavour, path, base", [
    (POSIX, "/data/", "/data"), (POSIX, "//data", "/data"), (POSIX, "/", "/"), (POSIX, "//", "/"),
    (POSIX, ".", "/home/user"), (POSIX, "x", "/home/user/x"),
    (POSIX, "../x", "/home/x"), (POSIX, "/../..", "/"), (POSIX, "/a/./b//c/..", "/a/b"),
    (POSIX, "C:\\x", "/home/user/C:\\x"), (POSIX, "/a b/é", "/a b/é"),
    (WINDOWS, "C:\\data\\", "C:\\data"), (WINDOWS, "c:/data", "c:\\data"), (WINDOWS, "C:\\", "C:\\"),
    (WINDOWS, "C:/", "C:\\"), (WINDOWS, ".", "D:\\work"), (WINDOWS, "x\\..\\y", "D:\\work\\y"),
    (WINDOWS, "\\x", "D:\\x"), (WINDOWS, "D:x", "D:\\work\\x"),
    (WINDOWS, "\\\\server\\share", "\\\\server\\share\\"), (WINDOWS, "//server/share/x/", "\\\\server\\share\\x"),
    (WINDOWS, "\\\\?\\C:\\x", "C:\\x"), (WINDOWS, "\\\\?\\UNC\\server\\share\\x", "\\\\server\\share\\x"),
])
def test_one_spelling_of_a_base(flavour, path, base):
    """FS-P2K-06, FS-MOD-03."""
    assert absolute_base(path, CWD[flavour], flavour) == base
    assert absolute_base(base, CWD[flavour], flavour) == base


@each("path", [5, None, b"x", ["x"]])
@each("use", [file_path, zcore.DirectoryStore, zcore.ZipStore, zcore.AsdfStore, zcore.asdf.open, zcore.asdf.defragment,
              zcore.asdf.explode, zcore.asdf.implode, zcore.asdf.stream, lambda path: zcore.asdf.write(path, {}),
              zcore.references_from_hdf5, lambda path: zcore.ReferenceStore({}).save(path),
              lambda path: zcore.RemoteStore("http://localhost/", path=path)])
def test_a_path_of_another_type_is_named(use, path):
    with pytest.raises(TypeError, match="^path is .*, expected a str or os.PathLike"):
        use(path)


@pytest.mark.parametrize("flavour, path", [
    (POSIX, ""), (POSIX, "a\0b"), (WINDOWS, ""), (WINDOWS, "C:\\a\0"), (WINDOWS, "\\\\.\\pipe\\x"),
])
def test_what_is_no_base(flavour, path):
    with pytest.raises(ValueError):
        absolute_base(path, CWD[flavour], flavour)
