"""Cases of TfIdfVectorizer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Tensor, integers, t, values
from lite_core.ir import DType


def _ids(*sizes: int) -> Tensor:
    """Return numbers from 0 to 8, of which the pools below know some."""
    return t(*sizes, init=integers(0, 9))


#: Two single elements and five pairs; the columns of the output are in another order than the pool.
_PAIRS: dict[str, Any] = {
    "max_skip_count": 0,
    "min_gram_length": 1,
    "max_gram_length": 2,
    "ngram_counts": (0, 2),
    "ngram_indexes": (6, 0, 2, 4, 1, 3, 5),
    "pool_int64s": (2, 5, 5, 4, 5, 6, 7, 8, 6, 7, 1, 1),
    "mode": "TF",
}
_WEIGHTS = (1.0, 0.5, 2.0, 0.25, 3.0, -1.0, 4.0)

vectorizer = table("TfIdfVectorizer")
vectorizer("33,tf", _ids(33), **_PAIRS)
vectorizer("3x33,tf", _ids(3, 33), **_PAIRS)
vectorizer("3x33,skip3", _ids(3, 33), **{**_PAIRS, "max_skip_count": 3})
vectorizer("3x33,pairs-only", _ids(3, 33), **{**_PAIRS, "min_gram_length": 2})
vectorizer("3x33,single-only", _ids(3, 33), **{**_PAIRS, "max_gram_length": 1})
vectorizer("3x33,idf", _ids(3, 33), **{**_PAIRS, "mode": "IDF"}, weights=_WEIGHTS)
vectorizer("3x33,tfidf,skip1", _ids(3, 33), **{**_PAIRS, "mode": "TFIDF", "max_skip_count": 1}, weights=_WEIGHTS)
vectorizer("3x33,idf,no-weights", _ids(3, 33), **{**_PAIRS, "mode": "IDF"})
vectorizer("1,shorter-than-a-pair", values([5]), **_PAIRS)
vectorizer("2x0,empty", _ids(2, 0), **_PAIRS)
vectorizer("0x5,empty", _ids(0, 5), **_PAIRS)
vectorizer("6,overlapping", values([1, 1, 1, 1, 2, 1]), **{**_PAIRS, "max_skip_count": 2})


@vectorizer.drawn
def draw_vectorizer(draw: Draw, dtype: DType) -> OpCase:
    sizes = [draw(st.integers(1, 12)) for _ in range(draw(st.integers(1, 2)))]
    skip, first = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    return vectorizer.case(_ids(*sizes), **{**_PAIRS, "max_skip_count": skip, "min_gram_length": first})
