"""Codecs from array to bytes: each chain has one of them."""
