"""What backends that compile partitions share; a library, not a plugin."""
