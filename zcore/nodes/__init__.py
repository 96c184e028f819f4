"""What the user holds: `Array` and `Group`, their attributes, and how they are shown."""
