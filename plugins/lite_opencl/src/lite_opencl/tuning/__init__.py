"""Tuning: :mod:`stopwatch` measures which kernels are fastest on a device, :mod:`table` stores the results."""
