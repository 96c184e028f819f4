"""Verbs that copy: three names for one engine, `zcore.copy`."""
