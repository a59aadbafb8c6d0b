"""Reading the text in a picture with PP-OCRv4, for ``lite demo`` and to be copied.

``text_reader`` is the pipeline, ``annotation`` draws what it read, and ``models`` finds and loads its models. They need
the extra ``lite-paddle[demo]``.
"""

from pathlib import Path

__all__ = ["LINES", "PICTURE"]

#: A picture with text, drawn for the demo.
PICTURE = Path(__file__).with_name("picture.png")
#: The lines of text in it, in reading order.
LINES = Path(__file__).with_name("picture.txt")
