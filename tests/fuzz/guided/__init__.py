"""Coverage-guided fuzzing: targets, the program that drives the compiled ones, and the replay of the corpus."""
