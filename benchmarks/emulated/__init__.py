"""Instructions counted under qemu, for ``arm_instructions.py``: the plugin, the counted program, and the results."""
