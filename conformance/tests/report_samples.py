"""Invented reports that resemble real ones: many operators, every status, long details, infinite and NaN numbers."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Sequence

from lite_conformance.judge.compare import Measured
from lite_conformance.judge.tolerances import Tolerance
from lite_conformance.reports.record import Record, Report, Status

#: Operators with their share of the nodes of real models.
OPERATORS = {
    "Conv": 0.214, "Relu": 0.148, "BatchNormalization": 0.087, "Add": 0.083, "Mul": 0.066, "MatMul": 0.058,
    "Concat": 0.047, "Reshape": 0.041, "Transpose": 0.036, "Sigmoid": 0.031, "Clip": 0.027, "MaxPool": 0.022,
    "HardSwish": 0.021, "Softmax": 0.017, "Gemm": 0.015, "Slice": 0.013, "Resize": 0.011, "GlobalAveragePool": 0.0098,
    "AveragePool": 0.0072, "ReduceMean": 0.0069, "LayerNormalization": 0.0061, "Unsqueeze": 0.0058, "Squeeze": 0.0051,
    "Gather": 0.0046, "Cast": 0.0042, "Sub": 0.0038, "Div": 0.0033, "Sqrt": 0.0029, "Exp": 0.0024, "Split": 0.0022,
    "ConvTranspose": 0.0019, "Pad": 0.0014, "Erf": 0.0011, "Where": 0.0009, "ArgMax": 0.0008, "TopK": 0.0006,
    "NonMaxSuppression": 0.0004, "LSTM": 0.0003, "GRU": 0.0002, "lite.box_coder": 0.0002, "Einsum": 0.0, "Det": 0.0,
}  # fmt: skip

DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int32": "i32", "int64": "i64"}
INTEGER_OPERATORS = {"Add", "Mul", "Sub", "Concat", "Reshape", "Transpose", "Slice", "Gather", "Cast", "Where", "Split"}

LONG_DETAILS = "\n".join(
    ["Traceback (most recent call last):"]
    + [
        line
        for step in range(24)
        for line in (
            f'  File "toy_backend/kernels/part_{step}.py", line {100 + step}, in run_{step}',
            f"    return step_{step + 1}(inputs, outputs, workspace_of_a_long_name[{step}], flags=0x{step:04x})",
        )
    ]
    + ["ValueError: the scratch buffer holds 4096 bytes, 4224 are needed"]
)

#: Texts that break pages and files without proper escaping.
HOSTILE = (
    "<script>window.broken = 1</script>",
    '</script><img src=x onerror="window.broken = 2">',
    "<!-- <script> \"double\" 'single' & &amp; `ticks` ${x} {{data}}",
    "line\u2028separator\u2029and \u202e right to left",
    "\x1b[31mred\x1b[0m \x00 nul \x07 bell [bold]markup[/bold]",
    "日本語 ünïcödé 🧨 \ud800 half of a pair",
)

LOOSE = Tolerance(4e-3, 2e-4, "toy_backend/expectations.toml", True, (1e-3, 1e-5), "exp uses a table of 512 entries")


def small_report(backend: str = "toy", version: str = "0.3.1", cases: int = 4, seed: int = 7) -> Report:
    """Return a report with every status, and ``cases`` cases for each operator and type."""
    rng = random.Random(seed)
    records = _framework_records(backend)
    for op, weight in OPERATORS.items():
        for dtype, short in DTYPES.items():
            if dtype.startswith("int") and op not in INTEGER_OPERATORS:
                continue
            for n in range(cases):
                records.append(
                    _operator_record(rng, backend, op, dtype, f"{op}[{short},n{n + 1}c{3 * n + 3}h8w8]", weight)
                )
    records += _rare_records(backend)
    report = Report(_header(backend, version), records, seconds=94.7)
    find(report, "MatMul[f32,n1c3h8w8]").measured = Measured(1e-7, 2e-6, 12.0, 1e-13, "", 2e-6, 1e-7, 0, 192)
    return report


def clean_report(backend: str = "host") -> Report:
    """Return a report without bad cases."""
    report = small_report(backend)
    report.records = [r for r in report.records if not r.status.is_bad]
    return report


def later_report(report: Report, version: str = "0.4.0") -> Report:
    """Return the report of a later version: one case each regressed, fixed, newly refused, added, gone and grown."""
    later = copy.deepcopy(report)
    later.header["versions"] = {**later.header["versions"], "toy-backend": version}
    later.header["started"] = "2025-03-09T08:00:00+00:00"
    later.seconds = 88.2
    relu = find(later, "Relu[f32,n1c3h8w8]")
    relu.status, relu.reason = Status.FAILED, "3 of 192 elements out of tolerance"
    relu.measured = Measured(0.5, 0.25, 4194304.0, 1e-3, "y[0, 1, 2, 2]: 0.5, expected 1.0", 0.25, 0.5, 3, 192)
    fixed = find(later, "Softmax[f32,n2c6h8w8,axis1]")
    fixed.status, fixed.reason, fixed.details = Status.PASSED, "", ""
    lost = find(later, "Concat[f32,n1c3h8w8]")
    lost.status, lost.reason, lost.measured = Status.UNSUPPORTED, "more than 2 inputs", None
    grown = find(later, "MatMul[f32,n1c3h8w8]")
    grown.measured = Measured(4e-7, 9e-6, 75.0, 1e-12, "y[0, 0]: 1.000009, expected 1.0", 9e-6, 4e-7, 0, 192)
    later.records.remove(find(later, "Det[f32,n1c3h8w8]"))
    later.records.append(
        Record("Mod[f32,n1c3h8w8]", 2, "ops", "Mod", "float32", relu.backend, relu.device, seconds=0.01)
    )
    return later


def hostile_report() -> Report:
    """Return a report with :data:`HOSTILE` texts in all fields."""
    records = [
        Record(
            case=f"Op[{index}] {text}",
            level=2,
            suite="ops",
            op=f"Op{index}<b>",
            dtype="float32",
            backend="<i>toy</i>",
            status=status,
            reason=text,
            details=f"{text}\n{text}",
            expectation=text,
            tolerance=Tolerance(1e-3, 1e-5, text, True, (1e-4, 1e-6), text),
            measured=Measured(math.nan, math.inf, math.inf, math.nan, text, math.inf, math.nan, 1, 1),
            repro=f"lite-conformance --case '{text}'",
            seconds=0.25,
        )
        for index, (text, status) in enumerate(
            (t, s) for t in HOSTILE for s in (Status.FAILED, Status.UNSUPPORTED, Status.XFAIL)
        )
    ]
    header = {"backend": "<i>toy</i>", "device": HOSTILE[1], "versions": {"x": HOSTILE[3]}, "odd": [1, math.nan, None]}
    return Report(header, records, 1.0)


def big_report(count: int = 7000) -> Report:
    """Return a report of about ``count`` cases on 160 operators."""
    base = small_report(cases=2)
    records = list(base.records)
    rng = random.Random(3)
    more = [*OPERATORS, *(f"Operator{n}" for n in range(118))]
    while len(records) < count:
        n = len(records)
        op = more[n % len(more)]
        dtype = list(DTYPES)[n % 5]
        records.append(
            _operator_record(
                rng, "toy", op, dtype, f"{op}[{DTYPES[dtype]},n1c{n}h8w8,variant{n}]", OPERATORS.get(op, 0.0001)
            )
        )
    return Report(base.header, records, 412.5)


def find(report: Report, case: str) -> Record:
    """Return the record of a case."""
    return next(r for r in report.records if r.case == case)


def one_of_each(backend: str = "toy") -> Report:
    """Return a report with one record of each status."""
    records = [
        Record(
            f"Relu[f32,n{n}]", 2, "ops", "Relu", "float32", backend, "cpu0", status,
            reason="" if status is Status.PASSED else f"because of {status}",
            repro=f"lite-conformance --backend {backend} --case 'Relu[f32,n{n}]'", seconds=0.5, weight=0.1,
        )
        for n, status in enumerate(Status)
    ]  # fmt: skip
    return Report({"backend": backend, "started": "2025-01-31T12:00:00+01:00"}, records, 4.5)


def _header(backend: str, version: str) -> dict[str, object]:
    return {
        "backend": backend,
        "device": "cpu:0 Toy accelerator, 8 cores",
        "plugin": "toy-backend",
        "platform": "Linux-6.8-x86_64, Python 3.11.7",
        "versions": {"lite-core": "0.1.0", "lite-conformance": "0.1.0", "toy-backend": version, "numpy": "2.1.3"},
        "options": {"levels": "0-5", "seed": 0, "jobs": 4},
        "started": "2025-03-02T17:45:10+00:00",
    }


def _framework_records(backend: str) -> list[Record]:
    named: Sequence[tuple[int, str, str, float]] = [
        (0, "probe", "probe answers", 0.004),
        (0, "probe", "probe twice", 0.009),
        *((1, "contract", f"contract[{rule}]", 0.05) for rule in (
            "inputs-unchanged", "outputs-owned", "two-threads", "empty-batch", "bad-input-raises", "save-restore")),
        *((3, "graphs", f"graph[chain{n}]", 0.31) for n in range(6)),
        *((4, "models", f"model[{name}]", seconds) for name, seconds in (
            ("mobilenet_v3_small", 6.42), ("ocr_rec", 3.9), ("ppyoloe_s", 12.8), ("picodet", 4.1))),
        *((5, "stress", f"stress[{what}]", 2.4) for what in ("threads8", "sessions100", "leak")),
    ]  # fmt: skip
    return [
        Record(case, level, suite, backend=backend, device="cpu:0", seconds=seconds, repro=_repro(backend, case))
        for level, suite, case, seconds in named
    ]


def _operator_record(rng: random.Random, backend: str, op: str, dtype: str, case: str, weight: float) -> Record:
    record = Record(
        case, 2, "ops", op, dtype, backend, "cpu:0", seed=rng.randrange(1000), seconds=rng.expovariate(30), examples=5,
        weight=weight, repro=_repro(backend, case),
    )  # fmt: skip
    if dtype == "bfloat16" or op in ("LSTM", "GRU", "NonMaxSuppression"):
        record.status = Status.UNSUPPORTED
        record.reason = (
            f"no kernel for {dtype}" if dtype == "bfloat16" else "recurrent and selecting operators run on host"
        )
        return record
    loose = op in ("Exp", "Softmax", "Erf") and dtype.startswith("float")
    standard = (1e-5, 1e-6) if dtype == "float32" else (1e-3, 1e-4) if dtype.startswith("float") else (0.0, 0.0)
    record.tolerance = LOOSE if loose else Tolerance(*standard, default=standard)
    used = rng.random() * 0.8 if standard[0] else 0.0
    rtol, atol = record.tolerance.rtol * used, record.tolerance.atol * used * 0.7
    record.measured = Measured(atol * 1.3, rtol * 1.1, used * 12, rtol**2, "", rtol, atol, 0, 192)
    return record


def _rare_records(backend: str) -> list[Record]:
    """Return records of each status but passed, which resemble real ones."""
    strict = Tolerance(1e-5, 1e-6, default=(1e-5, 1e-6))
    half = Tolerance(1e-3, 1e-4, default=(1e-3, 1e-4))

    def rare(case: str, op: str, dtype: str, status: Status, reason: str, **more: object) -> Record:
        record = Record(case, 2, "ops", op, dtype, backend, "cpu:0", status, reason, weight=OPERATORS.get(op, 0.0),
                        seed=11, seconds=0.12, examples=5, repro=_repro(backend, case))  # fmt: skip
        for key, value in more.items():
            setattr(record, key, value)
        return record

    def far(max_abs: float, worst: str, rtol: float, atol: float, wrong: int) -> Measured:
        return Measured(max_abs, max_abs * 1.7, max_abs * 8e6, max_abs**2, worst, rtol, atol, wrong, 4096)

    return [
        rare("Conv[f32,n1c3h8w8,o4,k3s2p1]", "Conv", "float32", Status.FAILED, "41 of 4096 elements out of tolerance",
             tolerance=strict, measured=far(0.25, "y[0, 3, 1, 7]: 1.25, expected 1.5", 0.166, 0.25, 41)),
        rare("Conv[f16,n1c8h4w4,o8,k1s1p0,g8]", "Conv", "float16", Status.FAILED, "NaN where a number is expected",
             tolerance=half, measured=Measured(math.nan, math.inf, math.inf, math.nan, "y[0, 0]: nan, expected -0.5",
                                               math.inf, math.inf, 128, 128)),
        rare("Softmax[f32,n2c6h8w8,axis1]", "Softmax", "float32", Status.FAILED, "12 of 4096 elements out of tolerance",
             tolerance=LOOSE, measured=far(0.031, "y[1, 5]: 0.031, expected 0.0", 0.0124, 6.2e-4, 12)),
        rare("MaxPool[i8,n1c3h9w9,k3s2p1,ceil]", "MaxPool", "int8", Status.CRASHED,
             "the process died of signal 11 (SIGSEGV)", details=LONG_DETAILS),
        rare("Resize[f32,n1c3h5w5,cubic,align_corners]", "Resize", "float32", Status.HUNG, "not done after 60 s",
             seconds=60.0, details="Thread 0x7f (most recent call first):\n  File \"toy/resize.py\", line 88 in cubic"),
        rare("Einsum[f32,bij-bjk]", "Einsum", "float32", Status.ERROR, "the oracle has no answer for 'bij,bjk->bik'"),
        rare("Pad[f32,n1c2h3w3,reflect]", "Pad", "float32", Status.XPASS, "passes; remove its xfail line",
             expectation="reflect padding of more than the size is wrong"),
        rare("Resize[f16,n1c3h5w5,linear]", "Resize", "float16", Status.XFAIL, "180 of 4096 elements out of tolerance",
             expectation="half-pixel weights are rounded to float16, issue 118", tolerance=half,
             measured=far(0.004, "y[0, 0, 2, 2]: 0.504, expected 0.5", 0.008, 0.004, 180)),
        rare("ConvTranspose[f16,n1c3h4w4]", "ConvTranspose", "float16", Status.XFAIL,
             "96 of 4096 elements out of tolerance", expectation="half-pixel weights are rounded to float16, issue 118",
             tolerance=half,
             measured=far(0.002, "y[0, 0, 1, 1]: 0.502, expected 0.5", 0.004, 0.002, 96)),
        rare("lite.box_coder[f32,n1,decode]", "lite.box_coder", "float32", Status.SKIPPED, "needs the package 'gdal'"),
    ]  # fmt: skip


def _repro(backend: str, case: str) -> str:
    return f"lite-conformance --backend {backend} --case '{case}' --seed 11"
