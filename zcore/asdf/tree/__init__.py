"""The tree of an ASDF file: YAML to values, values to YAML, and the arrays in it."""
