"""YAML: texts in the form that programs write."""
