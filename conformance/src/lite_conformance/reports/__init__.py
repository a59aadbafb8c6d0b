"""A run as people and other programs want it: records in JSON, a terminal summary, one HTML page, JUnit XML."""
