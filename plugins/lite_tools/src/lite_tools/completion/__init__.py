"""Completion of command lines by shells, without importing what commands need.

A shell waits for each answer. Commands are therefore described once as plain data (:mod:`.description`), which is kept
in the cache folder as long as the installed packages stay the same (:mod:`.stored`). Answers come from commands that
are made of this description (:mod:`.rebuilt`), by click; the scripts for the shells are in :mod:`.shells`.
"""
