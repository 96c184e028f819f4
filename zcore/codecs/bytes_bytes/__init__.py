"""Codecs from bytes to bytes: compressors, the byte shuffle, and checksums."""
