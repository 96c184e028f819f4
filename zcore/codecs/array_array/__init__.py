"""Codecs from array to array: they change the values of elements, or their order."""
