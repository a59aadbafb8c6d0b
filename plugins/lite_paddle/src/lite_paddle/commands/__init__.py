"""The commands that lite-paddle adds to ``lite``."""
