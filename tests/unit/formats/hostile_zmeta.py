"""Hostile members that `__zmeta__` alone has, for the class of all formats."""
from tests.unit.formats.conformance import LONE

VALID = {
    "shape": [10, 10], "chunks": [5, 5], "dtype": "<i4", "fill_value": 0, "cname": "lz4", "clevel": 5, "shuffle": 1,
}
WRONG = [  # (member, JSON text)
    ("shape", "10"), ("chunks", "5"),
    ("chunks", "[23171, 23171]"),   # beyond the limit of blosc
    ("dtype", "NaN"), ("dtype", '"|S0"'), ("dtype", '"<U0"'), ("dtype", '[["a", "|V0"]]'), ("fill_value", '"0"'),
    *[("cname", text) for text in ('"gzip"', '""', '"LZ4"', '"lz4\\u0000"', "null", "1", '["lz4"]', "{}", LONE)],
    *[("clevel", text) for text in ("-1", "10", "5.0", "true", '"5"', "null", "1e0", "[5]", "NaN")],
    *[("shuffle", text) for text in ("-1", "3", "true", "false", '"shuffle"', "1.0", "null", "256", "[1]")],
]
