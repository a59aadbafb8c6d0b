"""Mutations of inputs by their structure: bytes, protobuf messages, JSON documents, texts.

Every function takes an input and a random number generator, and returns an input with one change.
"""

from fuzz.mutation.documents import mutated_json
from fuzz.mutation.messages import mutated_message
from fuzz.mutation.plain import mutated_bytes
from fuzz.mutation.texts import mutated_text

__all__ = ["mutated_bytes", "mutated_json", "mutated_message", "mutated_text"]
