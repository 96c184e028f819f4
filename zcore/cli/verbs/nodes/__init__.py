"""Verbs that list, describe, create, change and delete arrays and groups."""
