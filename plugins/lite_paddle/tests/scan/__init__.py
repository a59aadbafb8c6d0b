"""The scan: operators with drawn attributes, shapes and element types, run by Paddle and by Lite's references."""
