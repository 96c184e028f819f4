"""What a reference set may point to: each way out of its directory, and what `allowed=` permits."""
import gc
import json
import os
import pickle
import sys
from types import MappingProxyType

import pytest

import zcore
from tests.descriptors import descriptors
from zcore.errors import ReferenceFormatError, ReferenceTargetError
from zcore.stores.reference.store import ReferenceStore
from zcore.stores.reference.targets import Targets


@pytest.fixture
def place(tmp_path):
    """A directory "data" with a set's targets, and next to it what no set may show."""
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.bin").write_bytes(b"inside")
    (tmp_path / "data" / "sub" / "b.bin").write_bytes(b"deeper")
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "a.bin").write_bytes(b"secret")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path


def zarray(n, n_chunk, dtype="|u1"):
    return {"zarr_format": 2, "shape": [n], "chunks": [n_chunk], "dtype": dtype, "compressor": None, "filters": None,
            "fill_value": 0, "order": "C"}


def value_of(url, base, **options):
    return ReferenceStore({"x": [url]}, base=base, **options).get("x")


@pytest.mark.parametrize("url", [
    "../secret", "sub/../../secret", "./../secret", "sub/../../database/a.bin", "../database/a.bin", "..",
    "/etc/passwd", "//etc/passwd", "file:///etc/passwd", "file:/etc/passwd", "FILE:///etc/passwd", "File:/etc/passwd",
    "file://localhost/etc/passwd", "file:///%65tc/passwd", "file:///etc/../etc/passwd", "/proc/self/environ",
    "/proc/self/fd/0", "/proc/self/root/etc/passwd", "/dev/stdin", "/dev/zero", "link", "folder/a.bin", "chain", "loop",
    "up/secret", "/", ".//../secret"])
def test_ways_out_of_the_directory(place, url):
    """RF-URL-08, RF-URL-03: with links resolved."""
    data = place / "data"
    (data / "link").symlink_to(place / "secret")
    (data / "folder").symlink_to(place / "database")
    (data / "chain").symlink_to("link")
    (data / "loop").symlink_to("loop")
    (data / "up").symlink_to("..")
    with pytest.raises(ReferenceTargetError) as caught:
        value_of(url, data)
    assert caught.value.key == "x" and caught.value.url == url
    assert url == "loop" or "would permit it" in str(caught.value)


@pytest.mark.parametrize("url", [
    "file://host/etc/passwd", "file://127.0.0.1/etc/passwd", "file:etc/passwd", "file:", "file://", "file:///a%2Fb",
    "file:///a%00b", "file:///a%zzb", "file:///a%", "file:///a?b", "file:///a#b", "file:///%ff%fe", "a\0b", "/a\0", "",
    "a/" * 100_000, "x" * 5000, "../" * 5000, "\ud800", "sub", "nothing"])
@pytest.mark.parametrize("threads", [1, 2])
def test_urls_that_name_no_file(place, url, threads):
    """RF-URL-03, RF-URL-07: whatever is wrong with a URL is an error of its reference, for the kernel's reads, too."""
    refs = {".zarray": zarray(12, 6), "0": ["a.bin"], "1": [url, 0, 6]}
    try:
        store = ReferenceStore(refs, base=place / "data", allowed=["/"])
    except ReferenceFormatError:
        assert url == "\ud800"
        return
    with pytest.raises(ReferenceTargetError) as caught:
        store.get("1")
    assert caught.value.key == "1" and caught.value.url == url and len(str(caught.value)) < 1500
    array = zcore.open(store, threads=threads)
    with pytest.raises(ReferenceTargetError) as again:
        array[...]
    assert str(again.value).endswith(str(caught.value)) and bytes(array[:6]) == b"inside"


def test_odd_names_inside(place):
    """RF-URL-03: a path is taken as it stands, a URI is decoded."""
    for name in ("with%20blank", "with blank", "a:b", "{{u}}", "ü", "100%", "a#b?c", "...", "..a", "data:,x", "C:\\x"):
        (place / "data" / name).write_text(name)
        assert value_of(name, place / "data") == name.encode()
        assert value_of("sub/../" + name, place / "data") == name.encode()
        assert value_of((place / "data" / name).as_uri(), place / "data") == name.encode()
        assert value_of((place / "data" / name).as_uri().replace("file", "FILE", 1), place / "data") == name.encode()


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_allowed_directories_end_where_their_names_do(place, slash):
    """RF-URL-08: "/data" does not allow "/database"."""
    base = place / "data" / "sub"
    allowed = [str(place / "data") + slash]
    assert value_of("../a.bin", base, allowed=allowed) == b"inside"
    assert value_of(str(place / "data" / "a.bin"), base, allowed=allowed) == b"inside"
    for url in ("../../database/a.bin", str(place / "database" / "a.bin"), str(place / "secret")):
        with pytest.raises(ReferenceTargetError, match="would permit"):
            value_of(url, base, allowed=allowed)
    uri = (place / "data").as_uri() + slash.replace("//", "/")
    assert value_of("../a.bin", base, allowed=[uri]) == b"inside"
    assert value_of("../a.bin", base, allowed=[place / "data"]) == b"inside"
    assert value_of("../a.bin", base, allowed=[place / "data" / "a.bin"]) == b"inside"
    assert value_of("../../secret", base, allowed=["/"]) == b"secret"


@pytest.mark.parametrize(("root", "url", "is_allowed"), [
    ("s3://bucket", "s3://bucket/a", True), ("s3://bucket/", "s3://bucket/a", True), ("s3://", "s3://bucket/a", True),
    ("s3://bucket", "s3://bucket-evil/a", False), ("s3://bucket/a", "s3://bucket/ab", False),
    ("s3://bucket/a/", "s3://bucket/a/../b", False), ("s3://bucket/a/", "s3://bucket/a/%2e%2E/b", False),
    ("s3://bucket/a/", "s3://bucket/a/%2e.%2Fb", False), ("https://host/a", "https://host/a/..\\b", False),
    ("https://host/a", "https://host/a/..%5cb", False), ("https://host", "https://host.evil/a", False),
    ("https://host", "https://host@evil/a", False), ("https://host", "https://host:81/a", False),
    ("https://host/a", "https://host/a/.\t./b", False), ("https://host/a", "https://host/a/%2\ne./b", False),
    ("https://host/a", "https://host/a/..?b", False), ("https://host/a", "https://host/a/..#b", False),
    ("https://host/a", "https://host/a/..;b", False), ("https://host/a", "https://host/a/%25252e.%252fb", False),
    ("https://host", "http://host/a", False), ("https://host/a", "https://host/a/b..c", True),
    ("/", "s3://bucket/a", False), ("s3://bucket", "zip://a::s3://bucket/a", False)])
def test_allowed_urls_end_where_their_names_do(tmp_path, root, url, is_allowed):
    """RF-URL-08, RF-URL-04: "s3://bucket" does not allow "s3://bucket-evil", nor what ".." may lead to."""
    class Service:
        def get(self, name):
            return name.encode()

        get_range = get

    options = {"allowed": [root], "services": {"s3://bucket": Service(), "https://host": Service()}}
    if is_allowed:
        assert value_of(url, tmp_path, **options) == url.partition("://")[2].partition("/")[2].encode()
    else:
        with pytest.raises(ReferenceTargetError):
            value_of(url, tmp_path, **options)


def test_nothing_is_allowed_by_an_empty_text(place, monkeypatch):
    """An empty directory would be the process's own, and all URLs begin with an empty text."""
    monkeypatch.chdir(place)
    for options in ({"allowed": [""]}, {"allowed": ["/x", ""]}, {"base": ""}, {"allowed": ["file://host/x"]}):
        with pytest.raises(ValueError):
            ReferenceStore({"x": ["secret"]}, **options)
    for options in ({"allowed": "/"}, {"allowed": [3]}, {"allowed": [None]}):
        with pytest.raises(TypeError):
            ReferenceStore({"x": ["secret"]}, **options)


def test_a_base_that_is_a_link_or_relative(place, monkeypatch):
    """RF-URL-02: links of the base are followed when the set is opened; later ones change nothing."""
    (place / "base").symlink_to("data")
    linked = ReferenceStore({"x": ["a.bin"], "y": ["../secret"]}, base=str(place / "base"))
    monkeypatch.chdir(place)
    relative = ReferenceStore({"x": ["a.bin"], "y": ["../secret"]}, base="data")
    uri = ReferenceStore({"x": ["a.bin"], "y": ["../secret"]}, base=(place / "data").as_uri())
    allowing = ReferenceStore({"x": ["a.bin"], "y": ["../secret"]}, base="data", allowed=["secret"])
    (place / "base").unlink()
    (place / "base").symlink_to("database")
    stores = [linked, relative, uri, allowing]
    monkeypatch.chdir("/")
    for store in (*stores, *pickle.loads(pickle.dumps(stores))):
        assert store.get("x") == b"inside"
    for store in (*stores[:3], *pickle.loads(pickle.dumps(stores[:3]))):
        with pytest.raises(ReferenceTargetError, match="would permit"):
            store.get("y")
    assert allowing.get("y") == pickle.loads(pickle.dumps(allowing)).get("y") == b"secret"


def test_a_document_that_is_reached_by_a_link(place):
    """RF-URL-02, RF-URL-08: its directory is the one that the link lies in, as for any path."""
    (place / "data" / "refs.json").write_text(json.dumps({"x": ["a.bin"], "y": ["../secret"]}))
    (place / "database" / "refs.json").symlink_to(place / "data" / "refs.json")
    assert ReferenceStore(place / "data" / "refs.json").get("x") == b"inside"
    assert ReferenceStore(place / "database" / "refs.json").get("x") == b"secret"
    with pytest.raises(ReferenceTargetError):
        ReferenceStore(place / "database" / "refs.json").get("y")


@pytest.mark.parametrize("name", ["sub", "sub/b.bin"])
def test_a_link_that_comes_between_the_look_and_the_opening(place, monkeypatch, name):
    """RF-URL-08: wherever in the path it is."""
    (place / "database" / "b.bin").write_bytes(b"secret")
    targets, real_open, n_opened = Targets(place / "data"), os.open, []
    os.close(Targets(place / "data").open("sub/b.bin"))

    def opening(path, flags, *args, **kwargs):
        n_opened.append(path)
        (place / "data" / name).rename(place / "data" / "old")
        (place / "data" / name).symlink_to(place / "database" / name.removeprefix("sub").removeprefix("/"))
        return real_open(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", opening)
    with pytest.raises(ReferenceTargetError):
        targets.open("sub/b.bin")
    assert (place / "data" / "sub" / "b.bin").read_bytes() == b"secret" and len(n_opened) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_a_link_that_is_removed_while_it_is_followed(place, monkeypatch):
    (place / "data" / "passing").symlink_to("a.bin")
    store = ReferenceStore({"x": ["passing"]}, base=place / "data")
    readlink = os.readlink

    def removed(path, **keywords):
        os.unlink(path)
        return readlink(path, **keywords)

    monkeypatch.setattr(os, "readlink", removed)
    with pytest.raises(ReferenceTargetError, match="cannot (follow its path|open it): No such file"):
        store.get("x")


def test_no_descriptor_is_left(place):
    """Whatever is refused."""
    (place / "data" / "loop").symlink_to("loop")
    os.mkfifo(place / "data" / "fifo")
    gc.collect()                 # what other tests have left
    n_open = descriptors()
    for url in ("fifo", "loop", "sub", "../secret", "a.bin", "nothing"):
        refs = {".zarray": zarray(60, 6), **{str(i): [url, 2 * i, 6] for i in range(10)}}
        store = ReferenceStore(refs, base=place / "data")
        for threads in (1, 4):
            with pytest.raises(ReferenceTargetError):
                zcore.open(store, threads=threads)[...]
        with pytest.raises(ReferenceTargetError):
            store.get("4")
    gc.collect()
    assert descriptors() <= n_open


def test_saved_in_another_directory_it_means_the_same_files(place):
    """RF-STO-02, RF-URL-02: relative URLs are relative to the document, and that is another one."""
    refs = {"a": ["a.bin"], "b": ["sub/b.bin", 1, 2], "c": ["s3://bucket/a"], "d": [str(place / "secret")], "e": "text",
            "f": ["file:///x"], "g": ["zip://a::b"]}
    (place / "data" / "refs.json").write_text(json.dumps(refs))
    store = ReferenceStore(place / "data" / "refs.json")
    store.save(place / "data" / "again.json")
    assert ReferenceStore(place / "data" / "again.json").to_v0() == refs
    store.save(place / "above.json")
    above = ReferenceStore(place / "above.json")
    assert above.to_v0() == {**refs, "a": ["data/a.bin"], "b": ["data/sub/b.bin", 1, 2]} and above.get("b") == b"ee"
    store.save(place / "database" / "refs.json")
    beside = ReferenceStore(place / "database" / "refs.json")
    with pytest.raises(ReferenceTargetError, match="would permit"):      # and not the a.bin that lies there
        beside.get("a")
    assert ReferenceStore(place / "database" / "refs.json", allowed=[place / "data"]).get("a") == b"inside"


def test_mappings_that_are_no_dict_of_json(place):
    """A mapping that cannot be a document is refused like one."""
    assert ReferenceStore(MappingProxyType({"a": "b"})).get("a") == b"b"
    deep, round = {}, {}
    for _ in range(10**5):
        deep = {"a": deep}
    round["a"] = round
    for mapping in ({"a": deep}, round, {1: "a", "1": "b"}):
        with pytest.raises(ReferenceFormatError):
            ReferenceStore(mapping)
    while deep:
        deep = deep.pop("a")     # level by level: a destructor, too, recurses
    with pytest.raises(TypeError):
        ReferenceStore({"a": b"bytes"})


def test_a_wildcard_is_no_place():
    with pytest.raises(ValueError, match="stands for all"):
        ReferenceStore({}, allowed=["*"])
