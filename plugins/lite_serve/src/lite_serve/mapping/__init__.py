"""Offline inference: a model over the parts of a dataset, each finished once, however often the run is killed."""
