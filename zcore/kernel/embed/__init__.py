"""Open arrays for callers in C: the table of functions that `zcore.h` looks into."""
