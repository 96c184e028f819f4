"""Which objects go when a node is deleted or replaced, and which are somebody else's."""
from tests.each import each
from zcore.formats import format_of
from zcore.hierarchy.ownership import role_of

_CASES = [
    (3, "zarr.json", "document"), (3, "c", "directory"), (3, "c/0", "directory"), (3, "c/0/1", "chunk"),
    (3, "c/0/1/2", None), (3, "0.1", None), (3, ".zarray", None), (3, "README", None),
    (2, ".zarray", "document"), (2, ".zattrs", "document"), (2, ".zmetadata", "remains"), (2, "0.1", "chunk"),
    (2, "0", None), (2, "0.1/README", None),
    ("zmeta", "__zattr__", "document"), ("zmeta", "__zdata__", "directory"), ("zmeta", "__zdata__/0.1.blosc", "chunk"),
    ("zmeta", "__zdata__/README", "remains"), ("zmeta", "README", None),
]


@each("zarr_format, name, role", _CASES)
def test_role_of_an_object_beside_an_array(zarr_format, name, role):
    format = format_of(zarr_format)
    metadata = format.new_array((4, 4), "i4", (2, 2), 0)
    assert role_of(name, format.array_document, format, metadata) == role


def test_a_group_has_documents_alone():
    v2 = format_of(2)
    assert [role_of(name, ".zgroup", v2, v2.new_group({})) for name in (".zgroup", ".zattrs", ".zmetadata", "0")] == [
        "document", "document", "document", None]
