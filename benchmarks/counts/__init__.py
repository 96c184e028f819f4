"""Counts instead of times: instructions and lines of code."""
