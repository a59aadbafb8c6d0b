"""Cases as folders in the form of ONNX's own test data, for runtimes that the suite cannot drive from Python.

:mod:`.exporting` writes a folder for each model with its inputs and expected outputs; the runtime writes its outputs to
folders of the same names; :mod:`.judging` compares them with the truth as the suite compares those of a backend.
"""
