"""Names of zarr-python that zcore has beside its own."""
import numpy as np
import pytest

import zcore


@pytest.fixture
def group():
    group = zcore.create_group(zcore.MemoryStore(), attributes={"kept": 1})
    group.create_array("sub/a", data=np.arange(4))
    return group


def test_errors_are_caught_by_the_names_of_zarr_python(group):
    errors = zcore.errors
    for name in ("ArrayNotFoundError", "GroupNotFoundError", "NodeNotFoundError", "PathNotFoundError"):
        with pytest.raises(getattr(errors, name)):
            group["none"]
    for name in ("ContainsArrayError", "ContainsGroupError", "ContainsArrayAndGroupError"):
        with pytest.raises(getattr(errors, name)):
            group.create_array("sub/a", shape=3, dtype="i4")
    for name in ("BoundsCheckError", "ArrayIndexError"):
        with pytest.raises(getattr(errors, name)):
            group["sub/a"][7]
    with pytest.raises(errors.MetadataValidationError):
        zcore.open({"zarr.json": b"{}"})
    with pytest.raises(errors.BaseZarrError):
        group["none"]
    for name in ("ZarrUserWarning", "ZarrDeprecationWarning", "UnstableSpecificationWarning"):
        assert issubclass(getattr(errors, name), Warning)


def test_members_of_one_kind(group):
    assert group.get_array("sub/a").path == "sub/a" and group.get_group("sub").path == "sub"
    for call, path, text in ((group.get_array, "sub", "no array"), (group.get_group, "sub/a", "no group"),
                             (group.get_array, "none", "no member"), (group.get_group, "none", "no member")):
        with pytest.raises(zcore.NodeNotFoundError, match=text):
            call(path)


def test_clear(group):
    group.clear()
    assert list(group) == [] and group.attrs == {"kept": 1}
    group.create_group("again")
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open_group(group.store).clear()


def test_datasets(group):
    with pytest.warns(DeprecationWarning, match="create_array"):
        assert group.create_dataset("b", data=[1, 2])[1] == 2
    with pytest.warns(DeprecationWarning, match="require_array"):
        assert group.require_dataset("b", shape=2, dtype="i8")[1] == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_compressors_have_no_checksum_at_their_end(zarr_format):
    array = zcore.create_array({}, data=np.arange(9), compressors="zstd", zarr_format=zarr_format)
    assert [codec.name for codec in array.compressors] == ["zstd"] and array.compressor.name == "zstd"
    like = zcore.create_array({}, data=np.arange(9), compressors=array.compressors, zarr_format=zarr_format)
    assert like.codecs == array.codecs
    plain = zcore.create_array({}, data=np.arange(9), compressors=None, zarr_format=zarr_format)
    assert plain.compressors == () and plain.compressor is None


@pytest.mark.parametrize(("attempt", "words"), [
    ("zcore.File", "zcore.open_group"), ("zcore.create_dataset", "zcore.create_array"),
    ("group['sub/a'].mean()", "dask"),
    ("zcore.create_array({}, shape=1, dtype='u1', maxshape=(None,))", "can be resized"),
    ("zcore.zeros(3, compressor=None)", "compressors="),
    ("group.create_array('x', shape=3, dtype='u1', compression='gzip')", "compressors="),
    ("zcore.open({}, 'w', shape=3, dtype='u1', compression='gzip')", "compressors="),
    ("zcore.xyzzy", "'xyzzy'"), ("group['sub/a'].xyzzy", "'xyzzy'"), ("zcore.zeros(3, xyzzy=1)", "'xyzzy'"),
])
def test_names_that_people_try_first_are_told_what_to_write(attempt, words, group):
    with pytest.raises((AttributeError, TypeError)) as caught:
        eval(attempt)
    assert words in str(caught.value)
    if "xyzzy" in attempt:
        assert str(caught.value).endswith(words)
