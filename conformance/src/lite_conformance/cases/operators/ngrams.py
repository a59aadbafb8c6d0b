"""Cases of TfIdfVectorizer."""

from __future__ import annotations

from typing import Any

import numpy as np
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
_SINGLE: dict[str, Any] = {**_PAIRS, "max_gram_length": 1, "ngram_counts": (0,)}
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
_MANY = 66000
vectorizer("66000,many-elements", t(_MANY, init=integers(2, 4)), **{**_PAIRS, "max_gram_length": 1})
vectorizer("66000,one-of-many-columns", values([5, 5, _MANY - 1]), **{
    **_SINGLE, "ngram_indexes": tuple(range(_MANY)), "pool_int64s": tuple(range(_MANY)),
})  # fmt: skip
vectorizer("66000,one-element", values(np.full(_MANY, 5)), **{**_PAIRS, "max_gram_length": 1})
vectorizer("4,weights-with-all-digits", values([2, 5, 5, 4]), **{**_PAIRS, "mode": "TFIDF"},
           weights=(0.1, 0.7, 2 / 3, 0.3, 1.1, -1 / 7, 4.3))  # fmt: skip
# A smaller type has none of these elements, or holds two of them for one.
for _dtype, _base in (("int32", 1 << 24), ("int64", 1 << 53)):
    vectorizer(f"6,large-elements,{_dtype}", values([_base, _base + 1, _base + 1, 0, 1, _base]), **{
        **_SINGLE, "ngram_indexes": (2, 0, 1), "pool_int64s": (_base, _base + 1, 1),
    }, dtypes=[_dtype])  # fmt: skip


@vectorizer.drawn
def draw_vectorizer(draw: Draw, dtype: DType) -> OpCase:
    sizes = [draw(st.integers(1, 12)) for _ in range(draw(st.integers(1, 2)))]
    skip, first = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    return vectorizer.case(_ids(*sizes), **{**_PAIRS, "max_skip_count": skip, "min_gram_length": first})
