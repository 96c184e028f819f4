"""The fill value of `__zmeta__` documents: one JSON scalar, which means what `ndarray.fill` of the time stored.

So a number on text is the text of the number, text too long is cut, and on a structure every field takes the scalar.
Written are numbers, "NaN" and the infinities as strings, complex as ``[re, im]``, dates as integers (NaT is -2**63),
ASCII text for ``S`` and ``V``.
"""
from zcore.model.fill_value import fill_bytes, fill_scalar, real_from_json, real_to_json


def parse_fill(dtype, value):
    """Return the bytes of the fill value that stands in a document; None, JSON's null, is undefined and reads as zeros.

    Raises : ValueError, if it is no scalar, or one that the type cannot hold.
    """
    if type(value) is list and dtype.kind == "c" and len(value) == 2:
        value = complex(real_from_json(value[0]), real_from_json(value[1]))
    elif isinstance(value, (list, dict)):
        raise ValueError(f"expected a scalar, found {'a list' if type(value) is list else 'an object'}")
    return fill_bytes(dtype, value, cut_text=True)


def render_fill(dtype, raw):
    """Return the JSON scalar that stands for the fill value of bytes `raw`.

    Raises : ValueError, if there is none: text that is not ASCII, fields that no one scalar fills.
    """
    if dtype.names is not None:
        for candidate in _candidates(dtype, raw):
            if _fills(dtype, candidate, raw):
                return candidate
        raise ValueError(
            "a __zmeta__ array cannot record a fill value whose fields differ; expected None, or one scalar that every "
            "field of the data type can hold"
        )
    scalar = fill_scalar(dtype, raw)
    kind = dtype.kind
    if kind == "f":
        return real_to_json(scalar)
    if kind == "c":
        return [real_to_json(scalar.real), real_to_json(scalar.imag)]
    if kind in "mM":
        return int(scalar.view("i8"))
    if kind in "SV":
        text = raw.rstrip(b"\0")
        if not text.isascii():
            raise ValueError(f"a __zmeta__ array cannot record the fill value {text[:40]!r}: it is not ASCII")
        return text.decode("ascii")
    return scalar.item()


def _fills(dtype, candidate, raw):
    try:
        return fill_bytes(dtype, candidate, cut_text=True) == raw
    except ValueError:
        return False


def _candidates(dtype, raw):
    """Yield the scalars that may have filled a structure, seen from each of its fields: as number and as text."""
    yield from (0, False, True)
    for name in dtype.names:
        base, offset = dtype.fields[name][:2]
        base = base.subdtype[0] if base.subdtype else base
        part = raw[offset:offset + base.itemsize]
        if base.names is not None:
            yield from _candidates(base, part)
        elif base.kind not in "SV" or part.isascii():
            value = render_fill(base, part)
            value = value[0] if base.kind == "c" else value
            yield value
            try:
                number = float(value)
            except (ValueError, OverflowError):
                continue
            yield number
            if number.is_integer():
                yield int(value if base.kind in "iumM" else number)
