"""The report of a quantization as tables."""

from __future__ import annotations

from lite_tools.commands.printing import console, table
from lite_tools.quantization import LayerRecord, OutputAccuracy, QuantizationReport

__all__ = ["accuracy_row", "print_quantization"]

#: Quantized layers that are shown: those whose results have most noise.
_MAX_LAYERS_SHOWN = 8


def print_quantization(report: QuantizationReport) -> None:
    """Print which layers compute with 8-bit integers, which do not and why, and the noise of results and outputs."""
    quantized = [layer for layer in report.layers if not layer.kept]
    before = sum(layer.bytes_before for layer in report.layers)
    after = sum(layer.bytes_after for layer in report.layers)
    console.print(
        f"{len(quantized)} of {len(report.layers)} layers compute with 8-bit integers; their weights shrink to "
        f"{after / max(before, 1):.0%}"
    )
    percentile = f" {report.percentile:g} %" if report.method == "percentile" else ""
    console.print(
        f"ranges: {report.method}{percentile} of {report.samples} samples; noise: measured on {report.measured} of them"
    )
    noisiest = sorted((layer for layer in quantized if layer.snr_db is not None), key=_noise_order)[:_MAX_LAYERS_SHOWN]
    if noisiest:
        console.print()
        alone = ["outputs, it alone"] if any(layer.alone_db is not None for layer in noisiest) else []
        rows = [(layer.name, layer.op, _decibels(layer.snr_db), _decibels(layer.alone_db)) for layer in noisiest]
        heads = ("int8 layer", "operator", "its SNR", *alone)
        table(heads, [row[: len(heads)] for row in rows], title="the layers with most noise")
    searched = [layer for layer in report.kept if layer.without_db is not None]
    if searched:
        console.print()
        table(
            ("kept in float32", "operator", "outputs, it alone", "with it in int8", "costs"),
            [
                (
                    layer.name,
                    layer.op,
                    _decibels(layer.alone_db),
                    _decibels(layer.without_db),
                    _kilobytes(layer.bytes_before * 3 // 4),
                )
                for layer in searched
            ],
        )
    reasons: dict[str, list[str]] = {}
    for layer in report.kept:
        if layer.without_db is None:
            reasons.setdefault(layer.kept, []).append(layer.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        console.print(f"{names[0]}{more} in float32: {reason}", markup=False)
    console.print()
    table(
        ("output", "largest difference", "signal/noise", "same top class"),
        map(accuracy_row, report.outputs),
        title="differences are shares of the output's range",
    )
    for note in report.notes:
        console.print(f"note: {note}", markup=False)


def accuracy_row(output: OutputAccuracy) -> tuple[str, ...]:
    """Return the cells of an output: name, difference as a share of its range, signal to noise, same top class."""
    agreement = "-" if output.top1_agreement is None else f"{output.top1_agreement:.1%}"
    return output.name, f"{output.max_difference:.3g}", f"{output.snr_db:.1f} dB", agreement


def _noise_order(layer: LayerRecord) -> float:
    return layer.snr_db if layer.snr_db is not None else 0.0


def _decibels(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f} dB"


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f} kB"
