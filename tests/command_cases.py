"""Every command with its options, on real models: what tests of JSON and of text in a terminal and a pipe type.

A case is a line: the schema of its JSON, and the words that are typed. Words in braces stand for the models and files
of :func:`workplace`, and ``{fresh}`` for a name that nothing has.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import catalog
import numpy as np

__all__ = ["CASES", "PREPARATION", "Case", "workplace"]

_TINY = catalog.GOLDENS / "tiny_conv"


class Case(NamedTuple):
    """A command.

    Attributes:
        schema: the name of the schema of its JSON.
        words: the command, without ``--json``.
        code: its exit code.
        is_wrapped: False if its text is for a program, and whole in a terminal, too.
    """

    schema: str
    words: str
    code: int = 0
    is_wrapped: bool = True

    @property
    def id(self) -> str:
        """The name of the test."""
        return self.words.replace("{", "").replace("}", "").replace("/", "-")


def workplace(folder: Path) -> dict[str, str]:
    """Return the files that stand for words in braces, in a folder in which commands may write.

    ``net`` is PP-OCR's classifier of directions, a small MobileNetV3; ``shape`` is a shape for it. ``page`` finds lines
    of text, ``mobile`` is a MobileNetV3 for pictures, ``tiny`` a small network with inputs ``inputs``.

    Raises:
        catalog.ModelUnavailableError: a wheel with a model is missing.
    """
    models = {"net": "pp_ocrv4_cls", "page": "pp_ocrv4_det", "mobile": "mobilenet_v3_small-pir"}
    files = {}
    for word, name in models.items():
        found = catalog.ensure(name)
        (folder / word).mkdir()
        for file in (found.model, found.params):
            shutil.copy(file, folder / word)
        files[word] = f"{word}/{found.model.name}"
    shutil.copytree(_TINY / "legacy", folder / "tiny")
    shutil.copy(_TINY / "inputs.npz", folder)
    (folder / "samples").mkdir()
    for seed in range(2):
        sample = np.random.default_rng(seed).random((1, 3, 48, 192), np.float32)
        np.save(folder / f"samples/{seed}.npy", sample)
    (folder / "set").mkdir()
    shutil.copytree(folder / "net", folder / "set/net")
    fixed = {"tiny": "tiny", "inputs": "inputs.npz", "shape": "-s x=1x3x48x192", "wide": "-s x=1x3x320x320"}
    return {**files, **fixed, "conf": "lite-conformance"}


#: Commands that are typed once before the cases, which need the files that these write.
PREPARATION = (
    "lite convert {net} -o net.lite --targets x86 {shape}",
    "lite bench {net} {shape} -b x86 -n 6 --save old.json",
    "lite compare {net} {shape} --a host --save a.npz",
    "{conf} run -b host --op Relu --level L2 --sample 5 --json old-report.json -q",
    "{conf} run -b host --op Relu --level L2 --sample 7 --json new-report.json -q",
    "{conf} profiles int8 -b host --json reports -q",
    "{conf} submit --report reports/int8.json -p int8 -o s.zip -q",
)

CASES = [
    Case("version", "lite --version"),
    Case("version", "{conf} --version"),
    Case("opt", "lite opt --version"),
    Case("error", "lite run nothing.onnx", 2),
    Case("error", "lite rum", 2),
    Case("error", "lite run {net} -b nothing {shape}", 3),
    Case("error", "lite run inputs.npz", 6),
    Case("error", "{conf} compare nothing.json nothing.json", 2),
    Case("backends", "lite backends"),
    Case("doctor", "lite doctor"),
    Case("plugins", "lite plugins"),
    Case("plugins", "lite plugins lite-tools"),
    Case("plugins-validate", "lite plugins validate lite-x86"),
    Case("new-plugin", "lite new-plugin operator,command {fresh} -o ."),
    Case("ops", "lite ops"),
    Case("ops", "lite ops Conv"),
    Case("ops", "lite ops --backend x86"),
    Case("ops", "lite ops Conv --backend opencl"),
    Case("ops", "lite ops --paddle"),
    Case("ops", "lite ops --paddle conv2d"),
    Case("completion", "lite completion zsh", is_wrapped=False),
    Case("run", "lite run {net} {shape}"),
    Case("run", "lite run {mobile} -b x86 --profile -n 2"),
    Case("run", "lite run {tiny} -i {inputs} -b host --verify 1 --validate --tap * -o outputs.npz"),
    Case("run", "lite run {page} {wide} -b x86 --profile --precision bfloat16"),
    Case("bench", "lite bench {net} {shape} -b x86 -n 3"),
    Case("bench", "lite bench {net} {shape} -b x86 -b host -n 6 --concurrent 2 --against old.json"),
    Case("bench", "lite bench {tiny} -i {inputs} -b x86,host -t 1 -t 2 -n 2 --precision float16 --limit 1"),
    Case("check", "lite check {page}"),
    Case("check", "lite check {page} -b numba"),
    Case("check", "lite check {net} --targets x86,arm,opencl"),
    Case("check", "lite check {net} --targets x86,nothing", 3),
    Case("inspect", "lite inspect {net}"),
    Case("inspect", "lite inspect {mobile} --ops --weights"),
    Case("inspect", "lite inspect {page} --optimized --origins"),
    Case("inspect", "lite inspect net.lite --sections"),
    Case("inspect", "lite inspect {page} --memory {wide}"),
    Case("inspect", "lite inspect net.lite --ops --weights --origins --memory --sections"),
    Case("inspect", "lite inspect {net} --svg net.svg"),
    Case("inspect", "lite inspect {net} --print-nodes conv* -o printing.lite"),
    Case("convert", "lite convert {net} -o out.lite --targets x86 {shape}"),
    Case("convert", "lite convert {net} -o small.lite --targets x86,arm {shape} --weights int8"),
    Case("convert", "lite convert {net} -o int8.lite --targets x86 {shape} --quantize int8 --calibrate samples"),
    Case("convert", "lite convert {net} -o net.onnx"),
    Case("convert", "lite convert {net} -o int8.onnx --quantize int8 --calibrate samples"),
    Case("compare", "lite compare {net} {shape} --b x86"),
    Case("compare", "lite compare {net} {shape} --b x86 --precision bfloat16 --all"),
    Case("compare", "lite compare {net} {shape} --a x86 --b x86 --runs 2"),
    Case("compare", "lite compare {net} {shape} --a host --save b.npz"),
    Case("compare", "lite compare {net} --b x86 --load a.npz"),
    Case("bisect", "lite bisect {net} {shape} --b x86 --by node"),
    Case("bisect", "lite bisect {net} {shape} --b x86 --by node --limit 1e-9", 1),
    Case("bisect", "lite bisect {net} {shape} --b x86 --by backend --limit 1e-9", 1),
    Case("bisect", "lite bisect {net} {shape} --b x86 --by pass --limit 1e-12", 1),
    Case("report", "lite report {tiny} -o report.zip --force"),
    Case("demo", "lite demo -o demo.png"),
    Case("opt", "lite opt --model_dir page --optimize_out page --valid_targets arm"),
    Case("opt", "lite opt --model_dir net --optimize_out net2 --valid_targets x86 --optimize_out_type lite"),
    Case("opt", "lite opt --model_set set --optimize_out written --valid_targets arm"),
    Case("opt", "lite opt --print_all_ops=true --valid_targets arm,opencl"),
    Case("opt", "lite opt --display_kernels=true --valid_targets arm"),
    Case("opt", "lite opt --print_model_ops=true --model_dir page --valid_targets arm"),
    Case("opt", "lite opt --print_model_ops=true --model_dir page --valid_targets x86 --optimize_out_type lite"),
    Case("opt", "lite opt --model_dir net --visualization_file_output_path net.html"),
    Case("map", "lite map {net} samples -o mapped"),
    Case("map", "lite map {net} a.npz -o mapped2", 1),
    Case("serve", "lite serve {net} --check --http-port 0 --grpc-port 0"),
    Case("serve", "lite serve set --check --http-port off --grpc-port 0 --name net --control"),
    Case("error", "lite serve nothing.onnx --http-port 0 --grpc-port 0", 2),
    Case("trust", "lite trust net.lite"),
    Case("trust", "lite trust --show net.lite"),
    Case("trust", "lite trust --list"),
    Case("tune", "lite tune --show"),
    Case("cache-fill", "lite cache fill {tiny}"),
    Case("cache", "lite cache"),
    Case("cache-clear", "lite cache clear --yes"),
    Case("conformance-compare", "{conf} compare old-report.json new-report.json"),
    Case("conformance-compare", "{conf} compare new-report.json old-report.json", 1),
    Case("error", "{conf} submit --report old-report.json -p int8 -o t.zip -q", 1),
    Case("conformance-submit", "{conf} submit --report reports/int8.json -p int8 -o t.zip -q"),
    Case("conformance-verify", "{conf} verify s.zip --quick"),
    Case("conformance-verify", "{conf} verify old.json", 6),
]
