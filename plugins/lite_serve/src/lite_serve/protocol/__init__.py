"""The Open Inference Protocol (KServe v2): requests, answers and errors, as JSON, as JSON with binary tensors, by gRPC.

https://github.com/kserve/open-inference-protocol. Nothing here knows a model, a server or a thread.
"""
