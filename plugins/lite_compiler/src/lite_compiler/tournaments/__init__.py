"""Tournaments: candidates that compute the same are timed in turns, and the fastest is used from then on.

Modules from the lowest layer up: :mod:`choice` is the result of a tournament, :mod:`table` keeps results in a file,
:mod:`turns` times two candidates, :mod:`chooser` looks a problem up, or holds a tournament. A backend adds what runs a
candidate on its devices.
"""
