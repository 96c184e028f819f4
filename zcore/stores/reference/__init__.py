"""Reference sets as a store."""
