"""Objects of a service as a store."""
