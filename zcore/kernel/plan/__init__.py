"""Plans: the loops that read and write the tasks of a selection."""
