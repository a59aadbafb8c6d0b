"""OpenCL devices: which there are, their memory, queues and uploaded constants."""
