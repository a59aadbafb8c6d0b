"""Fixtures of the tests of the protocol."""

from __future__ import annotations

import pytest

from lite_serve.protocol import json_texts


@pytest.fixture(params=["json", "orjson"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with each parser of JSON: orjson is optional."""
    if request.param == "json":
        monkeypatch.setattr(json_texts, "orjson", None)
    else:
        pytest.importorskip("orjson", reason="orjson is not installed: it has no wheels for this processor")
    return str(request.param)
