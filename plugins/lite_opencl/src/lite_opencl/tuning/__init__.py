"""What was measured to be fastest on a device."""
