"""Nodes in a hierarchy: found, created, changed, deleted, in an order that no kill turns into wrong data."""
