"""ASDF files whose line ends a program has converted, as git and FTP do: a right value, or an error.

Blocks have lost bytes or got some. A streamed block has neither size nor checksum, so missing bytes of its own rows
cannot be seen by any reader; bytes that were added can.
"""
import warnings

import numpy as np
import pytest

import zcore
from zcore.errors import ZcoreError

try:
    import asdf
except ImportError:
    asdf = None

pytest.importorskip("yaml")


def to_lf(data):
    return data.replace(b"\r\n", b"\n")


def to_crlf(data):
    return data.replace(b"\n", b"\r\n")


def to_crlf_once(data):
    return to_crlf(to_lf(data))


def behind_the_front(convert):
    """Return a function that converts the blocks and the index alone."""
    def changed(data):
        end = data.find(b"\xd3BLK")
        return data if end < 0 else data[:end] + convert(data[end:])

    return changed


def contents(rng, n_bytes):
    """Return bytes of a kind: with many ends of lines, or hardly any."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(0, 256, n_bytes).astype("u1").tobytes()
    if kind == 1:
        return rng.choice(np.frombuffer(b"\r\n\0ab", "u1"), n_bytes).tobytes()
    if kind == 2:
        data = bytearray(n_bytes)
        data[rng.integers(n_bytes):][:2] = b"\r\n"
        return bytes(data[:n_bytes])
    return (b"a line of text\r\n" * (n_bytes // 16 + 1))[:n_bytes]


def written(path, rng):
    """Write a file, and return its arrays by their names; that of a stream is `rows`."""
    n = int(rng.integers(1, 6))
    arrays = {f"x{i}": np.frombuffer(contents(rng, int(rng.choice([2, 14, 60, 400, 3338, 20000]))), "<u2")
              for i in range(n)}
    keywords = {"checksum": bool(rng.integers(2)), "index": bool(rng.integers(2)),
                "pad": int(rng.choice([0, 0, 1, 70]))}
    if rng.integers(4) == 0:
        rows = np.frombuffer(contents(rng, int(rng.choice([12, 600]))), "<u2").reshape(-1, 3)
        with zcore.asdf.stream(path, {**arrays, "rows": zcore.asdf.Stream((3,), "<u2")}) as writer:
            writer.append(rows)
        return {**arrays, "rows": rows}
    if rng.integers(3) == 0 and asdf is not None:
        asdf.AsdfFile(arrays).write_to(
            path, include_block_index=keywords["index"], pad_blocks=bool(keywords["pad"]),
            all_array_compression=[None, "zlib", "bzp2"][rng.integers(3)])
        return arrays
    zcore.asdf.write(path, arrays, compression=[None, None, "zlib", "bzp2", "lz4"][rng.integers(5)], **keywords)
    if rng.integers(4) == 0:
        with zcore.asdf.open(path, "rw") as file:     # blocks that the tree does not mention
            file.append_block(b"\r\n" * 40)
    if rng.integers(4) == 0:
        # One that it mentions, and that is not there.
        data = path.read_bytes()
        path.write_bytes(data.replace(b"source: 0", b"source: 9", 1))
        arrays["x0"] = None
    return arrays


def found_in(path, name):
    """Iterate over functions that read an array, or a part of it."""
    def by_tree(verify):
        with zcore.asdf.open(path, verify=verify) as file:
            return np.asarray(file.tree[name])

    yield lambda: by_tree(True)
    yield lambda: by_tree(False)
    yield lambda: zcore.open(path)[name][:]
    yield lambda: zcore.open(path)[name][-1:]


def check_converted(path, seed):
    """Convert a file in several ways; returns how many reads were right, and how many were errors."""
    rng = np.random.default_rng(seed)
    arrays = written(path, rng)
    whole = path.read_bytes()
    n_right = n_errors = 0
    for convert in (to_lf, to_crlf, to_crlf_once, behind_the_front(to_lf), behind_the_front(to_crlf)):
        path.write_bytes(convert(whole))
        for name, value in arrays.items():
            if name == "rows" and convert is not to_crlf and convert(whole) != whole:
                continue
            for read in found_in(path, name):
                try:
                    found = read()
                except ZcoreError:
                    n_errors += 1
                    continue
                assert value is not None, (seed, convert, name)
                assert len(found) in (1, len(value)) and np.array_equal(found, value[-len(found):]), (
                    seed, convert, name)
                n_right += 1
    return n_right, n_errors


def check_many(path, seeds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n_right, n_errors = np.sum([check_converted(path, seed) for seed in seeds], axis=0)
    assert n_right > 5 * len(seeds) and n_errors > 5 * len(seeds)


def test_converted_line_ends_are_right_values_or_errors(tmp_path):
    check_many(tmp_path / "a.asdf", range(15))


@pytest.mark.slow
def test_converted_line_ends_of_many_files(tmp_path):
    check_many(tmp_path / "a.asdf", range(1000, 3000))
