"""Codecs in C, and the program that a codec chain becomes."""
