"""Tables of references: where the bytes of keys lie in other files."""
