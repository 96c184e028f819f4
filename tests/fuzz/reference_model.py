"""What a reference set without templates says, by Python's json: the judge of the kernel's reader."""
import json
from binascii import a2b_base64

from zcore.stores.keys import check_key


class _Odd(int):
    """-0, which is no offset, but a number in an object."""


class _Constant(float):
    """NaN or an infinity, which an object of a reference may have."""


def members_once(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def finite(text):
    assert abs(float(text)) != float("inf")
    return float(text)


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def _has_constant(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, _Constant) or any(map(_has_constant, inner))


def _reference(value):
    if isinstance(value, str):
        data = value.encode()
        return a2b_base64(data[7:], strict_mode=True) if data.startswith(b"base64:") else data
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":")).encode()
    assert type(value) is list and len(value) in (1, 3) and isinstance(value[0], str)
    value[0].encode()
    assert all(type(n) is int and n >= 0 for n in value[1:]) and sum(value[1:]) < 2**63
    return (value[0], value[1], value[2]) if len(value) == 3 else (value[0], 0, None)


def model(raw):
    """Return what `read_document` should find in a set without templates, or None if it should refuse it."""
    try:
        document = json.loads(raw.decode(), object_pairs_hook=members_once, parse_float=finite,
                              parse_int=lambda digits: _Odd() if digits == "-0" else int(digits),
                              parse_constant=_Constant)
        assert type(document) is dict and depth(document) <= 64
        refs = document
        version = document.get("version")
        if type(version) is int or (document.keys() == {"refs"} and type(document["refs"]) is dict):
            assert version in (1, None)
            assert not any(_has_constant(document[name]) for name in document.keys() - {"version", "refs"})
            refs = document.get("refs", {})
            assert type(refs) is dict
        else:
            assert version is None and "version" not in document or "refs" not in document
        # VirtualiZarr's key of a scalar's chunk ends where that of Zarr v2 has a 0.
        named = {key + "0" if key.endswith("/") else key: value for key, value in refs.items()}
        assert len(named) == len(refs)
        return {check_key(key).encode(): _reference(value) for key, value in named.items()}
    except (ValueError, AssertionError, RecursionError):
        return None
