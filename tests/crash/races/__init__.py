"""Calls that meet on one array: every pair of verbs, judged by all orders in which they may have taken place."""
