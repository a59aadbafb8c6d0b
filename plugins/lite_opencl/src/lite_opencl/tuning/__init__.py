"""What was measured to be fastest on a device: :mod:`table` keeps it, :mod:`stopwatch` measures."""
