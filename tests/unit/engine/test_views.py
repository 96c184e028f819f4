"""zcore keeps the parsed metadata of short documents, also without a handle."""
import zcore
from zcore.engine import known_documents, views


def test_metadata_of_long_documents_are_not_kept(tmp_path):
    """64 of them, each of millions of values, could fill memory."""
    for n in (10, views.MAX_KEPT_NBYTES):
        zcore.create_array(tmp_path, shape=1, dtype="i4", attributes={"x": "a" * n}, overwrite=True)
        views._parse.cache_clear()
        views._resolve.cache_clear()
        known_documents._kept.clear()
        for _ in range(2):
            assert zcore.open(tmp_path).attrs["x"] == "a" * n
        n_kept = n == 10
        assert views._resolve.cache_info().currsize == len(known_documents._kept) == n_kept
