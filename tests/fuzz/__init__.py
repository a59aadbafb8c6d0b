"""Fuzzing: damaged inputs for every reader, every cache, and the texts of the command line.

``make fuzz SECONDS=60`` attacks the targets of :mod:`fuzz.targets` one after another, each in a worker process. A
worker mutates inputs by their structure (:mod:`fuzz.mutation`) and, where the package atheris is installed, keeps those
that reach new branches. An execution may end with a result or with a LiteError, in limited time and memory; everything
else is a finding (:mod:`fuzz.execution`). A worker that dies is replaced, and its last input is a finding as well.

``tests/fuzz/corpus/TARGET`` holds one input for each defect that was found, and inputs that reach much of a reader;
``tests/test_fuzz.py`` runs them all. ``out/fuzz/TARGET`` holds the growing corpus and the findings of this machine.
"""
