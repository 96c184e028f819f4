"""A simulated service: one seeded program in place of S3, under writers whose requests it lets wait, fail and repeat.

`python -m tests.simulated --seconds N` runs one schedule after another; `--seed S` replays one exactly. See
docs/testing.md, "A simulated service".
"""
