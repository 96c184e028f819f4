"""Verbs about whole stores and files."""
