"""The arrays, files and servers that are read and written."""
