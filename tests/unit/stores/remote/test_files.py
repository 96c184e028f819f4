"""Archives and ASDF files at a service: only the directory and what is wanted are read, all of one version."""
import io
import pickle
import zipfile

import numpy as np
import pytest

import zcore
from zcore.errors import (
    AsdfFormatError,
    InvalidKeyError,
    ReadOnlyError,
    ReferenceTargetError,
    StoreError,
    UnsupportedError,
)
from zcore.stores.remote import store as remote_file
from zcore.stores.zip.store import ZipStore

pytest.importorskip("obstore")

ELEMENTS = np.random.default_rng(5).integers(0, 99, (64, 64)).astype("<i4")


def archive(method=zipfile.ZIP_STORED, **settings):
    """Return the bytes of an archive with a group of two arrays, larger than what is read of its end."""
    store = zcore.MemoryStore()
    group = zcore.create_group(store, attributes={"title": "far"})
    group.create_array("a", data=ELEMENTS, chunks=(16, 16), compressors=None, **settings)
    group.create_array("big", data=np.arange(100_000, dtype="<i8"), chunks=(50_000,), compressors=None)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        # The chunks first, so that they do not lie in the end that is read anyway.
        for key in sorted(store.list(), key=lambda key: (key.endswith("json"), "/c/" not in key, key)):
            file.writestr(key, store.get(key))
    return made.getvalue()


def n_bytes(site):
    """Return how many bytes all answers to ranges had."""
    total = 0
    for path, part in site.data():
        first, last = part.removeprefix("bytes=").split("-")
        total += (int(last) + 1 - int(first)) if first and last else min(int(last or 0) or 1 << 30,
                                                                         len(site.files[path]))
    return total


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["x.zip", "X.ZIP", "x.ozx"])
def test_an_archive_on_a_server(site, name, method):
    site.files[name] = archive(method)
    group = zcore.open(f"{site.url}/{name}")
    assert group.attrs["title"] == "far" and sorted(group.array_keys()) == ["a", "big"]
    assert np.array_equal(group["a"][:], ELEMENTS) and group["big"][-1] == 99_999
    assert np.array_equal(group["a"][5:40:3, ::-2], ELEMENTS[5:40:3, ::-2])
    assert zcore.verify(f"{site.url}/{name}").ok and type(group.store) is ZipStore
    assert np.array_equal(zcore.copy(f"{site.url}/{name}", zcore.MemoryStore())["a"][:], ELEMENTS)
    with pytest.raises(ReadOnlyError):
        group["a"][0] = 1
    again = pickle.loads(pickle.dumps(group))
    assert np.array_equal(again["a"][0], ELEMENTS[0])


def test_only_the_directory_and_the_wanted_members_are_requested(site):
    site.files["x.zip"] = data = archive()
    group = zcore.open(f"{site.url}/x.zip")
    a = group["a"]
    # Documents lie in the end, which is read at once. A server without suffixes is asked for the size first.
    assert len(site.data()) == 1 and len(site.data("HEAD")) <= 1
    site.requests.clear()
    assert np.array_equal(a[0:16, 16:32], ELEMENTS[:16, 16:32])
    assert len(site.data()) == 1 and n_bytes(site) <= 4096
    site.requests.clear()
    assert np.array_equal(a[:], ELEMENTS)
    assert 1 <= len(site.data()) <= 16 and n_bytes(site) < 16 * 4096 < len(data)
    assert all(part is not None for _, part in site.data())


def test_a_part_of_a_large_member_is_one_range(site):
    site.files["x.zip"] = archive(shards=(64, 64))
    a = zcore.open(f"{site.url}/x.zip")["a"]
    site.requests.clear()
    assert np.array_equal(a[:16, :16], ELEMENTS[:16, :16])
    # The header of the member, the index of the shard, one chunk; each at least as long as what is read ahead.
    assert len(site.data()) <= 3 and n_bytes(site) <= 3 * 4096


def test_requests_are_in_flight_together(site):
    site.files["x.zip"] = archive()
    big = zcore.open(f"{site.url}/x.zip")
    site.delay = 0.1
    site.n_most = 0
    big["a"][:]
    assert site.n_most > 1


def test_a_reference_set_of_an_archive(site):
    site.files["x.zip"] = archive()
    refs = zcore.references(f"{site.url}/x.zip", max_inlined=0)
    found = zcore.open(refs)
    assert found["a"][:4, :4].tolist() == ELEMENTS[:4, :4].tolist()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_verify_reads_each_byte_once_or_twice(site, method, monkeypatch):
    site.files["x.zip"] = archive(method)
    zcore.verify(f"{site.url}/x.zip")
    assert n_bytes(site) < 3 * len(site.files["x.zip"]) + 40 * 4096
    monkeypatch.setattr("zcore.stores.zip.store.FAR_NBYTES", 50_000)
    assert zcore.verify(f"{site.url}/x.zip").ok
    big = zcore.open(f"{site.url}/x.zip")["big"]
    assert np.array_equal(big[:], np.arange(100_000)) and big[77_777] == 77_777


def test_a_directory_larger_than_the_end(site):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for i in range(3000):
            file.writestr(f"k/{i:040}", b"%d" % i)
    site.files["x.zip"] = made.getvalue()
    store = ZipStore(zcore.RemoteStore(f"{site.url}/x.zip"))
    assert len(site.data()) == 2 and len(store.list_dir("k/").keys) == 3000
    assert store.get(f"k/{7:040}") == b"7" and store.getsize(f"k/{1234:040}") == 4 and store.get("k/7") is None


@pytest.mark.parametrize("tags", [True, False])
def test_an_archive_that_is_replaced_is_an_error(site, tags):
    site.tags = tags
    site.files["x.zip"] = first = archive()
    a = zcore.open(f"{site.url}/x.zip")["a"]
    a[:16, :16]
    other = archive(attributes={"of": "another length"})
    # Without tags the time of the last change and the size tell versions apart.
    site.files["x.zip"] = first[:100] + b"?" + first[101:] if tags else other
    with pytest.raises(StoreError, match="was replaced by another object while it was read"):
        a[:]
    del site.files["x.zip"]
    with pytest.raises(StoreError, match="was removed while it was read"):
        a[:]


def test_a_directory_of_that_name_is_opened_as_one(bucket):
    name, options = bucket
    store = zcore.RemoteStore(f"s3://{name}/x.zip", **options)
    zcore.create_array(store, data=ELEMENTS)
    assert np.array_equal(zcore.open(zcore.RemoteStore(f"s3://{name}/x.zip", **options))[:], ELEMENTS)


def test_an_archive_in_a_bucket(bucket):
    name, options = bucket
    zcore.RemoteStore(f"s3://{name}", **options).set("far/x.zip", archive())
    store = zcore.RemoteStore(f"s3://{name}/far/x.zip", **options)
    group = zcore.open(store)
    assert np.array_equal(group["a"][:], ELEMENTS) and np.array_equal(zcore.open(store, path="a")[3], ELEMENTS[3])
    zcore.RemoteStore(f"s3://{name}", **options).set("far/x.zip", archive(attributes={"a": 1}))
    with pytest.raises(StoreError, match="replaced"):
        group["big"][:]


def test_what_a_hostile_archive_claims(site, monkeypatch):
    site.files["x.zip"] = b"nothing of the kind" * 5000
    with pytest.raises(StoreError, match="zip archive"):
        zcore.open(f"{site.url}/x.zip")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("../x", b"1")
    site.files["x.zip"] = made.getvalue()
    with pytest.raises(InvalidKeyError):
        zcore.open(f"{site.url}/x.zip")
    data = bytearray(archive())
    entry = data.index(b"PK\x01\x02")
    for at, value, message in ((42, 0x7fffffff, "the file has"), (20, 0x7fffffff, "the file has")):
        broken = bytearray(data)
        broken[entry + at:entry + at + 4] = value.to_bytes(4, "little")
        site.files["x.zip"] = bytes(broken)
        with pytest.raises(StoreError, match=message):
            zcore.open(f"{site.url}/x.zip")
    # A header that contradicts the directory is found when the member is read.
    broken = bytearray(data)
    broken[14] ^= 1
    site.files["x.zip"] = bytes(broken)
    with pytest.raises(StoreError, match="in its header"):
        zcore.open(f"{site.url}/x.zip")["a"][:]
    with zipfile.ZipFile(made := io.BytesIO(), "w"):
        pass
    site.files["x.zip"] = made.getvalue()
    assert list(ZipStore(zcore.RemoteStore(f"{site.url}/x.zip")).list()) == []
    monkeypatch.setattr("zcore.stores.zip.members._MAX_DIRECTORY_NBYTES", 100)
    site.files["x.zip"] = bytes(data)
    with pytest.raises(StoreError, match="at most 100 are read"):
        zcore.open(f"{site.url}/x.zip")


def test_every_fault_of_the_server_is_an_error(site):
    site.files["x.zip"] = archive()
    a = zcore.open(zcore.RemoteStore(f"{site.url}/x.zip", retry_config={"max_retries": 0}))["a"]
    for fault in (403, 500, "short"):
        site.faults["x.zip"] = [fault] * 40
        with pytest.raises(StoreError):
            a[:]
        site.faults.clear()
    assert np.array_equal(a[:], ELEMENTS)
    site.ranges = False
    b = zcore.open(f"{site.url}/x.zip")["a"]
    assert np.array_equal(b[:], ELEMENTS)


def test_small_reads_bring_their_neighbours(site):
    site.files["x"] = bytes(range(256)) * 100
    file = remote_file.RemoteFile(zcore.RemoteStore(f"{site.url}/x"), (0, 10))
    site.requests.clear()
    assert file.read_at(5, 3) == bytes([5, 6, 7]) and site.data() == []
    assert file.read_at(1000, 2) == bytes([232, 233]) and file.read_at(3000, 4) == bytes([184, 185, 186, 187])
    assert len(site.data()) == 1
    assert file.read_at(25_590, 100) == bytes(range(246, 256)) and file.read_at(25_600, 9) == b""


# ASDF

LARGE = np.arange(3 << 20, dtype="<i4").reshape(3, 1024, 1024)


@pytest.fixture
def asdf_file(tmp_path):
    """The bytes of an ASDF file with arrays of every kind."""
    pytest.importorskip("yaml")
    path = tmp_path / "x.asdf"
    zcore.asdf.write(path, {
        "small": ELEMENTS, "large": LARGE, "columns": np.asfortranarray(LARGE[0].astype("<f8")), "name": "M 31",
        "flipped": ELEMENTS[::-1], "last": np.arange(5)})
    return path.read_bytes()


def test_an_asdf_file_on_a_server(site, asdf_file):
    site.files["x.ASDF"] = asdf_file
    group = zcore.open(f"{site.url}/x.ASDF")
    assert group.attrs["name"] == "M 31"
    # The beginning and the block index; the headers of the first and the last block.
    assert len(site.data()) <= 5 and n_bytes(site) < 100_000 < len(asdf_file)
    assert np.array_equal(group["small"][:], ELEMENTS) and np.array_equal(group["flipped"][:], ELEMENTS[::-1])
    large = group["large"]
    assert large.shape == LARGE.shape and large.chunks == (1, 256, 1024)
    site.requests.clear()
    assert np.array_equal(large[1, 300:310, 5], LARGE[1, 300:310, 5])
    assert len(site.data()) <= 2 and n_bytes(site) <= (1 << 20) + 4096
    assert np.array_equal(large[:], LARGE) and np.array_equal(large[::2, ::-300, 7], LARGE[::2, ::-300, 7])
    columns = group["columns"]
    assert columns.order == "F" and columns.chunks == (1024, 128)
    assert np.array_equal(columns[:], LARGE[0]) and np.array_equal(group["last"][1:3], [1, 2])
    assert sorted(group.store.list_dir("columns/").keys)[-1] == "columns/0.7"
    assert zcore.verify(f"{site.url}/x.ASDF").ok
    assert np.array_equal(pickle.loads(pickle.dumps(large))[2, 1], LARGE[2, 1])
    assert np.array_equal(zcore.copy(group["large"], zcore.MemoryStore())[:], LARGE)
    assert np.array_equal(zcore.copy(f"{site.url}/x.ASDF", zcore.MemoryStore())["columns"][:], LARGE[0])


@pytest.mark.parametrize("compression", ["zlib", "bzp2", "lz4"])
def test_compressed_blocks(site, tmp_path, compression):
    pytest.importorskip("yaml")
    zcore.asdf.write(tmp_path / "x.asdf", {"a": ELEMENTS, "b": LARGE[0]}, compression=compression)
    site.files["x.asdf"] = (tmp_path / "x.asdf").read_bytes()
    group = zcore.open(f"{site.url}/x.asdf")
    assert np.array_equal(group["a"][3:5], ELEMENTS[3:5])
    site.requests.clear()
    assert np.array_equal(group["b"][:, 9], LARGE[0, :, 9])
    # Of a stream no small pieces are asked for; lz4 has a record for each 4 MiB.
    assert len(site.data()) <= 4


def test_arrays_without_elements_have_no_chunks(site, tmp_path):
    pytest.importorskip("yaml")
    zcore.asdf.write(tmp_path / "x.asdf", {"a": np.zeros((0, 3))})
    site.files["x.asdf"] = (tmp_path / "x.asdf").read_bytes()
    a = zcore.open(f"{site.url}/x.asdf")["a"]
    assert a[...].shape == (0, 3) and a.store.get("a/0.0") is None and zcore.verify(a.store).problems == []


def test_the_border_of_an_array_in_chunks(site, tmp_path):
    pytest.importorskip("yaml")
    values = np.arange(1100 * 1000, dtype="<f4").reshape(1100, 1000)
    zcore.asdf.write(tmp_path / "x.asdf", {"a": values})
    site.files["x.asdf"] = (tmp_path / "x.asdf").read_bytes()
    a = zcore.open(f"{site.url}/x.asdf")["a"]
    assert a.chunks == (262, 1000) and np.array_equal(a[:], values)
    assert np.array_equal(a[1090:, ::99], values[1090:, ::99])
    store = a.store
    names = store.list_dir("a/").keys
    assert [len(store.get(name)) for name in names if name[2] != "."] == [262_000 * 4] * 5
    assert store.get("a/4.0", (52_000 * 4 - 4, 8)) == values[-1, -1:].tobytes() + bytes(4)
    assert store.get("a/5.0") is None and store.get("a/0.1") is None and store.get("a/00.0") is None


def test_an_asdf_file_that_is_replaced_is_an_error(site, asdf_file):
    site.files["x.asdf"] = asdf_file
    group = zcore.open(f"{site.url}/x.asdf")
    large = group["large"]
    large[0, 0]
    site.files["x.asdf"] = asdf_file[:-1] + b" "
    with pytest.raises(StoreError, match="was replaced by another object while it was read"):
        large[2]


def test_a_tree_from_a_service_names_no_file_here(site, tmp_path):
    pytest.importorskip("yaml")
    zcore.asdf.write(tmp_path / "secret.asdf", {"a": ELEMENTS})
    for uri in (f"file://{tmp_path}/secret.asdf", str(tmp_path / "secret.asdf"), "secret.asdf",
                f"{site.url}/secret.asdf"):
        text = ("#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n"
                f"a: !core/ndarray-1.1.0\n  source: {uri}\n  datatype: int32\n  byteorder: little\n"
                "  shape: [64, 64]\n...\n")
        site.files["x.asdf"] = text.encode()
        group = zcore.open(f"{site.url}/x.asdf")
        with pytest.raises((ReferenceTargetError, UnsupportedError, AsdfFormatError)):
            group["a"][:]


def test_a_block_index_that_lies_in_its_middle(site, tmp_path):
    pytest.importorskip("yaml")
    zcore.asdf.write(tmp_path / "x.asdf", {name: ELEMENTS + i for i, name in enumerate("abcde")})
    data = (tmp_path / "x.asdf").read_bytes()
    with zcore.asdf.open(tmp_path / "x.asdf") as file:
        offsets = [block.offset for block in file.blocks]
    lies = data.replace(b"%d" % offsets[2], b"%d" % (offsets[2] + 60))
    assert lies != data
    site.files["x.asdf"] = lies
    group = zcore.open(f"{site.url}/x.asdf")
    assert np.array_equal(group["a"][:], ELEMENTS) and np.array_equal(group["e"][:], ELEMENTS + 4)
    for name in "bc":
        with pytest.raises(AsdfFormatError):
            group[name][:]


def test_what_a_hostile_asdf_file_claims(site, tmp_path, asdf_file):
    for data in (b"", b"no ASDF", asdf_file[:200], b"#ASDF 1.0.0\n" + b"#" * 3_000_000):
        site.files["x.asdf"] = data
        with pytest.raises((AsdfFormatError, StoreError)):
            zcore.open(f"{site.url}/x.asdf")
    text = (b"#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n"
            b"a: !core/ndarray-1.1.0\n  source: 0\n  datatype: int32\n  byteorder: little\n"
            b"  shape: [4611686018427387, 64]\n...\n")
    header = zcore.asdf.file_layout.render_block_header(48, 0, b"", 4, 4, 4, bytes(16))
    site.files["x.asdf"] = text + header + b"abcd"
    with pytest.raises(AsdfFormatError):
        zcore.open(f"{site.url}/x.asdf")["a"][0, 0]


def test_an_asdf_file_in_a_bucket(bucket, asdf_file):
    name, options = bucket
    zcore.RemoteStore(f"s3://{name}", **options).set("x.asdf", asdf_file)
    group = zcore.open(zcore.RemoteStore(f"s3://{name}/x.asdf", **options))
    assert np.array_equal(group["large"][1, 5:9], LARGE[1, 5:9])
