"""Driving the backend under test by its contract: finding it, and calling it with every buffer watched."""
