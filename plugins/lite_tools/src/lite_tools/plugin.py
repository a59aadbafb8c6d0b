"""What lite-tools gives to Lite: commands."""

from __future__ import annotations

LITE_API_VERSION = 1
