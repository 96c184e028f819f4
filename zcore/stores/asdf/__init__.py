"""An ASDF file as a store."""
