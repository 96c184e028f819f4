# A script that a test runs in a process of its own, where this folder is the path.
collect_ignore = ["mutate_chunks.py"]
