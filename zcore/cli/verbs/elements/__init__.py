"""Verbs that print, compare and draw elements."""
