"""From a partition's graph to a native program.

Each operator family registers how it is lowered; importing this package fills the table.
"""

from lite_cpu.lowering import (  # noqa: F401
    convolution,
    einsum,
    elementwise,
    gather,
    matmul,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    search,
    shape,
    softmax,
    transposed,
)
