"""The handles of the user, `Array` and `Group`: their attributes, and how they are displayed."""
