"""TfIdfVectorizer: counts of the n-grams of a list of known ones."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional, required
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]


def _infer(inference: Inference) -> list[Shape | None]:
    attributes, shape = inference.attributes, inference.shape(0)
    columns, weights = _columns(attributes["ngram_indexes"]), attributes["weights"]
    is_text = inference.dtype(0) is DType.STRING
    if (attributes["pool_strings"] is None) is is_text or (attributes["pool_int64s"] is None) is not is_text:
        raise fail(f"it needs pool_strings for strings, or else pool_int64s; its input is {inference.dtype(0)}")
    if weights is not None and len(weights) != len(attributes["ngram_indexes"]):
        raise fail(f"it has {len(weights)} weights for {len(attributes['ngram_indexes'])} n-grams")
    if attributes["mode"] not in ("TF", "IDF", "TFIDF"):
        raise fail(f"mode must be TF, IDF or TFIDF, is {attributes['mode']!r}")
    if not 0 < attributes["min_gram_length"] <= attributes["max_gram_length"] or attributes["max_skip_count"] < 0:
        raise fail("min_gram_length must be 1 to max_gram_length, and max_skip_count not negative")
    if shape is None:
        return [None]
    if len(shape) not in (1, 2):
        raise fail(f"the input must have 1 or 2 dimensions, has shape {format_shape(shape)}")
    rows: tuple[Dim, ...] = shape[:-1]
    return [(*rows, columns)]


def _columns(indexes: tuple[int, ...]) -> int:
    if not indexes or min(indexes) < 0:
        raise fail("ngram_indexes must be a list of columns of the output, from 0")
    return max(indexes) + 1


def _known_ngrams(pool: tuple[Any, ...], starts: tuple[int, ...], indexes: tuple[int, ...]) -> dict[Any, int]:
    """Return the output column of each n-gram. The n-grams of n elements begin at ``starts[n - 1]`` of the pool."""
    bounds = (*starts, len(pool))
    if any(not 0 <= a <= b or (b - a) % n for n, (a, b) in enumerate(pairwise(bounds), 1)):
        raise fail(f"ngram_counts {list(starts)} does not cut a pool of {len(pool)} elements into n-grams")
    grams = [pool[i : i + n] for n, (a, b) in enumerate(pairwise(bounds), 1) for i in range(a, b, n)]
    if len(grams) != len(indexes):
        raise fail(f"the pool has {len(grams)} n-grams, and ngram_indexes {len(indexes)} entries")
    return dict(zip(grams, indexes))


@op(
    "TfIdfVectorizer",
    "X: T -> Y: float32",
    types={"T": (DType.INT32, DType.INT64, DType.STRING)},
    attributes={
        "max_gram_length": required("int"),
        "max_skip_count": required("int"),
        "min_gram_length": required("int"),
        "mode": required("str"),
        "ngram_counts": required("ints"),
        "ngram_indexes": required("ints"),
        "pool_int64s": optional("ints"),
        "pool_strings": optional("strs"),
        "weights": optional("floats"),
    },
    infer=_infer,
)
def tf_idf_vectorizer(
    x: Array,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: tuple[int, ...],
    ngram_indexes: tuple[int, ...],
    pool_int64s: tuple[int, ...] | None,
    pool_strings: tuple[str, ...] | None,
    weights: tuple[float, ...] | None,
) -> Array:
    """Counts of the known n-grams in each row, with up to ``max_skip_count`` elements between two of their own.

    ``mode`` IDF is the weight of each n-gram that occurs, TFIDF its count times its weight.
    """
    columns = _known_ngrams(pool_int64s or pool_strings or (), ngram_counts, ngram_indexes)
    steps = [
        (n, step)
        for n in range(min_gram_length, max_gram_length + 1)
        for step in range(1, max_skip_count + 2 if n > 1 else 2)
    ]
    counts = np.zeros((*x.shape[:-1], _columns(ngram_indexes)), np.float32)
    for row, found in zip(np.atleast_2d(x).tolist(), np.atleast_2d(counts)):
        for n, step in steps:
            grams = zip(*(row[i * step :] for i in range(n)))
            for gram, count in Counter(gram for gram in grams if gram in columns).items():
                found[columns[gram]] += count
    if mode == "TF":
        return counts
    factors = np.ones(counts.shape[-1], np.float32)
    if weights is not None:
        factors[list(ngram_indexes)] = weights  # in the order of the pool
    return (counts if mode == "TFIDF" else (counts > 0)) * factors
