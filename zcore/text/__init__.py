"""Parsers and printers of text: strict JSON, sizes such as ``"4 MB"``, printable names."""
