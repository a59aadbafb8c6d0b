"""The models of a server: a repository of versions, instances that run them, queues, batches and metrics."""
