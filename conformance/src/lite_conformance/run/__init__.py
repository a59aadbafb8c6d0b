"""Running the suite: selecting cases, worker processes, records, and scripts that repeat failures."""
