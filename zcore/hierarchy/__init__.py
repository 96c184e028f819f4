"""Nodes in a hierarchy: finds, creates, changes and deletes them in an order that leaves no wrong data after a kill."""
