"""Comparison of Lite with other inference engines; ``benchmarks/peers.py`` is its command line."""
