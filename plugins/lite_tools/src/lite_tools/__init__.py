"""The command line of Lite, with conversion, quantization, diagnostics and checks of models."""
