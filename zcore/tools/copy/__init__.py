"""`zcore.copy`: arrays and groups brought to another place, format, chunking or type."""
