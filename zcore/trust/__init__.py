"""What a document may point at: the rules for files, links, URLs and network addresses, without reading anything."""
