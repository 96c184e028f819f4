"""An open node: its metadata bound to a store, and reads and writes that the kernel runs."""
