"""What is kept of documents when no handle has their metadata any more."""
import gc
import weakref

import zcore
from zcore.engine import views


def test_metadata_of_long_documents_are_not_kept(tmp_path):
    """64 of them, each of millions of values, could fill memory."""
    for n in (10, views.MAX_KEPT_NBYTES):
        zcore.create_array(tmp_path, shape=1, dtype="i4", attributes={"x": "a" * n}, overwrite=True)
        metadata = weakref.ref(zcore.open(tmp_path)._binding.metadata)
        gc.collect()
        assert (metadata() is None) == (n > 10)
