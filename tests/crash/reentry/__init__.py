"""Calls that are made inside another call, and at moments at which a program is not itself: none waits for itself."""
