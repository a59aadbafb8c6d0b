"""A run of the suite: which cases, in which processes, and what their failures are written down as."""
