"""Files: objects read and replaced, locks, documents."""
