"""The user's handles, `Array` and `Group`, with their attributes and their display."""
