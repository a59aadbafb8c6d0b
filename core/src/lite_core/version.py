"""The version of lite-core, in a separate module so that other modules can import it alone."""

__all__ = ["__version__"]

__version__ = "0.1.0"
