"""The two servers, HTTP and gRPC, in one event loop: limits, logs, tokens, and a shutdown that loses no request."""
