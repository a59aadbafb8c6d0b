"""``python -m onnx_node_data [PATTERN]``: a quick summary of the node data without pytest."""

from __future__ import annotations

import fnmatch
import sys
from collections import Counter

from onnx_node_data.convert import NotConvertible
from onnx_node_data.data import case_names
from onnx_node_data.test_node_data import run_case

counts: Counter[str] = Counter()
for case in fnmatch.filter(case_names(), sys.argv[1] if len(sys.argv) > 1 else "*"):
    try:
        run_case(case)
        counts["passed"] += 1
    except NotConvertible as error:
        counts["not in the opset"] += 1
        print(f"{case}: {error}")
    except Exception as error:
        counts["failed"] += 1
        print(f"{case}: FAILED {type(error).__name__}: {str(error).strip()[:300]}")
print(dict(counts))
