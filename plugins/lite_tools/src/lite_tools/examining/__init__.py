"""Examining the installed plugins: each is imported, asked and tried in a process that may end without harm."""
