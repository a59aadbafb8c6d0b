"""A script that asks a CPU backend about a node and lets it compile, for processes with a disturbed compiler."""

__all__ = ["ASK_AND_COMPILE"]

ASK_AND_COMPILE = """
from lite_core import GraphBuilder
from lite_core.backend import Device, No, Options, Partition
from lite_cpu import X86_64_V2
from lite_cpu.backend import CpuBackend

class Level(CpuBackend):
    def machine(self):
        return X86_64_V2
    def probe(self):
        return [Device("level")]

b = GraphBuilder("small")
b.output(b.add("Relu", [b.input("x", "float32", [3])]), "y")
graph, backend, device = b.build(), Level("level"), Device("level")
print(backend.supports(graph.nodes[0], device).reason)
try:
    backend.compile(Partition("part", graph), device, Options())
except Exception as error:
    print(type(error).__name__, error)
"""
