"""The workloads, as data."""
