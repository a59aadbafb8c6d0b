"""Lite side by side with other inference engines; ``benchmarks/peers.py`` is its command line."""
