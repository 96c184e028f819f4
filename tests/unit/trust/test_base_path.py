"""The one spelling of a base directory."""
import pytest

from tests.each import each
from zcore.trust.base_path import absolute_base

CWD = "/home/user"


@each("path, base", [
    ("/data/", "/data"), ("//data", "/data"), ("/", "/"), ("//", "/"),
    (".", "/home/user"), ("x", "/home/user/x"),
    ("../x", "/home/x"), ("/../..", "/"), ("/a/./b//c/..", "/a/b"),
    ("C:\\x", "/home/user/C:\\x"), ("/a b/é", "/a b/é"),
])
def test_one_spelling_of_a_base(path, base):
    """FS-P2K-06, FS-MOD-03."""
    assert absolute_base(path, CWD) == base
    assert absolute_base(base, CWD) == base


@pytest.mark.parametrize("path", ["", "a\0b", "a\ud800"])
def test_what_is_no_base(path):
    with pytest.raises(ValueError):
        absolute_base(path, CWD)
