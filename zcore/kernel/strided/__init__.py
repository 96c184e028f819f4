"""Strided copies."""
