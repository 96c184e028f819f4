"""LRU caches of shard indices and decoded chunks."""
