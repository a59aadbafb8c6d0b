"""Measurement of the numbers of a :class:`~lite_cpu.tuning.Tuning` on the processor at hand, in one to two seconds."""
