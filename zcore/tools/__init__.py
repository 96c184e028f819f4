"""What is made of arrays and groups for other programs."""
