"""Finds the backend under test and calls it through the contract, checking every buffer."""
