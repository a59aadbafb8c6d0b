"""Models of Lite behind an endpoint, and over large tables: the commands ``lite serve`` and ``lite map``."""
