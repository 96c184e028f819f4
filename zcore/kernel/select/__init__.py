"""Selections on the chunk grid, as numbered tasks."""
