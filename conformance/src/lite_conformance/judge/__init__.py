"""Telling right from wrong: the truth, how far a result may be from it, and how a case ends."""
