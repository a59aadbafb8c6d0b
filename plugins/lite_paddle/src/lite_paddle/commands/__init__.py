"""Commands that lite-paddle adds to ``lite``."""
