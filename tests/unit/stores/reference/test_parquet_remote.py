"""Reference sets in Parquet that a service keeps, or whose targets it keeps."""
import numpy as np
import pytest

import zcore
from zcore.errors import ReferenceTargetError
from zcore.stores.reference.store import ReferenceStore

pytest.importorskip("pyarrow")     # which test_parquet needs: the second import of a skipped module is half of it
from .test_parquet import ARRAY, GROUP, write_file, write_set

pytest.importorskip("obstore")


@pytest.fixture
def published(site, tmp_path):
    """A site with a set of five chunks in three files, beside its target."""
    site.files["dir/data.bin"] = bytes(range(200))
    refs = write_set(tmp_path / "refs.parq", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    for file in range(3):
        rows = range(2 * file, min(5, 2 * file + 2))
        write_file(refs, f"x/refs.{file}.parq", path=["data.bin"] * len(rows), offset=[20 * i for i in rows],
                   size=[10] * len(rows))
    for path in refs.rglob("*"):
        if path.is_file():
            site.files[f"dir/refs.parq/{path.relative_to(refs).as_posix()}"] = path.read_bytes()
    site.refs = refs
    return site


EXPECTED = np.add.outer(20 * np.arange(5), np.arange(10)).reshape(-1)


def test_set_on_a_server(published):
    """RF-DOC-04, RF-URL-02, RF-URL-08: relative URLs mean what lies beside the set; this machine has to be allowed."""
    url = published.url + "dir/refs.parq"
    array = zcore.open(ReferenceStore(url, allowed=[published.url]))["x"]
    np.testing.assert_array_equal(array[...], EXPECTED)
    np.testing.assert_array_equal(array[35:], EXPECTED[35:])
    with pytest.raises(ReferenceTargetError, match="allowed="):
        zcore.open(url)["x"][...]


def test_set_in_a_bucket(published, bucket):
    name, options = bucket
    store = zcore.RemoteStore(f"s3://{name}/sets", **options)
    for path, data in published.files.items():
        store.set(path, data)
    array = zcore.open(ReferenceStore(f"s3://{name}/sets/dir/refs.parq/", services={"s3://": options}))["x"]
    np.testing.assert_array_equal(array[...], EXPECTED)


def test_local_set_with_remote_targets(published):
    """RF-URL-09: of neighbours in one target one request is made."""
    url = published.url + "dir/data.bin"
    write_file(published.refs, "x/refs.0.parq", path=[url] * 2, offset=[0, 20], size=[10, 10])
    (published.refs.parent / "data.bin").write_bytes(bytes(range(200)))
    array = zcore.open(published.refs)["x"]
    published.requests.clear()
    np.testing.assert_array_equal(array[...], EXPECTED)
    assert published.data() == [("dir/data.bin", "bytes=0-29")]
