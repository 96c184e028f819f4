"""What stands in texts: strict JSON, sizes such as ``"4 MB"``, names that can be printed."""
