"""An example of a backend for Lite: partitions compiled whole by JAX, in a memory of immutable arrays."""
