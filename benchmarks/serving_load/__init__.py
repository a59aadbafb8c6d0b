"""What benchmarks/serving.py measures: servers under load, their own cost, idle, and over many requests."""
