"""Reports of a run: JSON records, a terminal summary, one HTML page, JUnit XML."""
