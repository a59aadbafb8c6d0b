"""What is asked of a backend: the cases of every level, and what they are made of."""
