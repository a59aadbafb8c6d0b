"""The Granite chip for Lite."""
