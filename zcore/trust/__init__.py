"""Rules for the targets of untrusted documents: files, links, URLs and network addresses. Nothing is read here."""
