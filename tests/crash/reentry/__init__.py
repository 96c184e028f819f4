"""Calls that are made inside another call, in a forked child, or while the interpreter exits: none waits for itself."""
