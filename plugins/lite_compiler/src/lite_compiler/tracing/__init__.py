"""Sizes that are recorded while a partition is lowered, so that its numbers can be calculated for other sizes.

:mod:`.numbers` has the recorded numbers, :mod:`.recipe` what is made of the record.
"""
