"""The modules and names that are public, for whom, and the committed lists of them; see docs/api-stability.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lite_core.backend import API_VERSION
from lite_core.version import __version__
from public_names import lines_of_modules
from workspace import ROOT

__all__ = ["LISTS", "PublicList", "present"]

FOLDER = ROOT / "tests/public_api"
_MINOR = ".".join(__version__.split(".")[:2])

#: The public modules, and if not all of ``__all__`` is public, the names that are.
_FOR_PLUGINS: dict[str, str] = {
    "lite_core.backend": "",
    "lite_core.observing": "",
    "lite_core.reports": "",
    "lite_core.stack": "",
    "lite_core.saved_kernels": "",
    "lite_core.kernel_backend": "KernelBackend",
    "lite_core.plugins": "ENTRY_POINT_GROUP hookimpl plugins_with",
    "lite_core.plugins.hooks": "HookSpecs",
    "lite_core.formats": "Format WritesModels",
    "lite_core.ops": (
        "OPSET_VERSION AttributeSpec OpDef Parameter add all_ops attributes_of choice define find get optional "
        "required verify"
    ),
    "lite_core.ops.dtypes": "",
    "lite_core.ops.inference": "",
    "lite_core.ops.evaluate": "",
    "lite_core.ops.infer": "infer_graph specialize",
    "lite_core.ops.helpers": "",
    "lite_core.passes": "Inspect Pass PassRecord PassResult default_passes optimize run_passes",
    "lite_core.passes.rewriting": "",
    "lite_core.ir": (
        "Array Attribute DType Dim Graph Node Origin SavedWeights Shape SymbolicDim TensorType Value aligned_empty "
        "evaluate_shape format_graph fresh_dim verify_structure"
    ),
    "lite_core.builder": "",
    "lite_core.memory": "HostMemory read_only",
    "lite_core.deadline": "check_time",
    "lite_core.checks": "is_there",
    "lite_core.log": "tracked",
    "lite_core.forking": "",
    "lite_core.storage": "cache_folder cache_limit configuration configuration_folder",
    "lite_core.errors": "",
    "lite_tools.commands": (
        "EXIT_CRASH EXIT_FAILURE EXIT_FILE EXIT_NOTHING EXIT_OK EXIT_UNAVAILABLE EXIT_USAGE ImageOptions LazyCommand "
        "UnavailableError backend_option backend_options_option backends_of check_writable collect_inputs console "
        "input_option json_option milliseconds model_argument parse_shapes precision_option print_error print_json "
        "print_notes print_text reader_option seed_option set_progress shape_option shown_progress table "
        "threads_option tune_option version_option"
    ),
    "lite_conformance.plugin_cases": "",
    "lite_conformance.pytest_plugin": "",
}
_FOR_PROGRAMS: dict[str, str] = {
    "lite_core": "",
    "lite_core.session": "Binding PlanStatistics",
    "lite_core.schedule": "CopyTime KernelRecord NodeAssignment PartitionTime",
    "lite_core.container": "ModelFile",
    "lite_tools.conversion": "ConversionReport TargetReport convert",
    "lite_tools.writing": "write_model",
    "lite_tools.quantization": (
        "LayerRecord OutputAccuracy QuantizationReport QuantizationResult QuantizedModel WeightRecord quantize_model "
        "quantize_weights"
    ),
    "lite_tools.taps": "Tap print_tap",
    "lite_tools.checking": "",
    "lite_conformance": "Record Report Selection Status check_backend read_report",
    "lite_onnx": "",
    "lite_paddle.paddlelite": "",
}
_LIBRARIES: dict[str, str] = {
    "lite_compiler.staging": "Compile FindDataDependent StagedExecutable can_compile_whole",
    "lite_compiler.observing": "",
    "lite_compiler.registry": "",
    "lite_numba": "",
}
#: Classes of objects that only Lite makes, with their public members; all if empty.
_MADE_BY_LITE: dict[str, str] = {
    "lite_core.Session": (
        "assignment bind close closed computes describe devices graph inputs last_profile name notes outputs "
        "plan_statistics prepare run run_async selection_log shortfalls"
    ),
    "lite_core.RunProfile": "as_dict by_device by_op copies kernels partitions plan_seconds seconds to_json",
    "lite_core.session.Binding": "inputs outputs run",
    "lite_core.container.ModelFile": (
        "format_version graph has_code metadata open optimized path producer sections targets verify"
    ),
    "lite_core.ops.inference.Inference": (
        "attributes dims dtype has infer_graph ints n_outputs shape type types value values"
    ),
    "lite_core.passes.rewriting.Scope": "",
    "lite_tools.conversion.ConversionReport": "",
    "lite_tools.conversion.TargetReport": "",
    "lite_tools.quantization.LayerRecord": "",
    "lite_tools.quantization.OutputAccuracy": "",
    "lite_tools.quantization.QuantizationReport": "",
    "lite_tools.quantization.QuantizationResult": "",
    "lite_tools.quantization.QuantizedModel": "",
    "lite_tools.quantization.WeightRecord": "",
    "lite_conformance.Record": "",
    "lite_conformance.Report": "",
    "lite_conformance.plugin_cases.Body": "make",
    "lite_conformance.plugin_cases.Draft": (
        "__call__ argument batch_norm body branch builder constant conv dtype gelu hard_swish input input_of linear "
        "output several swish weight"
    ),
    "lite_conformance.plugin_cases.OpCase": "attributes domain inputs label op outputs",
    "lite_conformance.plugin_cases.OpTable": "__call__ case drawn",
}


@dataclass(frozen=True)
class PublicList:
    """A committed list of names that share a promise.

    Attributes:
        title: what the names are, for the first line of the list and for messages.
        file: the list; its name ends with the version that the promise is for.
        modules: the public modules, and which of their names are public; all if empty.
        version: the version to raise for an incompatible change, and its value.
    """

    title: str
    file: Path
    modules: Mapping[str, str]
    version: str

    @property
    def header(self) -> str:
        return (
            f"# {self.title} ({self.version}). `make docs` adds new names; docs/api-stability.md says what may change."
        )

    @property
    def committed(self) -> list[str]:
        """The lines of the list; none before it is first written."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        return [line for line in text.splitlines() if line and not line.startswith("#")]


LISTS = {
    "plugins": PublicList(
        "The contract of plugins", FOLDER / f"plugins-{API_VERSION}.txt", _FOR_PLUGINS, f"API_VERSION {API_VERSION}"
    ),
    "programs": PublicList(
        "What programs use", FOLDER / f"programs-{_MINOR}.txt", _FOR_PROGRAMS, f"minor version {_MINOR}"
    ),
    "libraries": PublicList(
        "Libraries for backends", FOLDER / f"libraries-{_MINOR}.txt", _LIBRARIES, f"minor version {_MINOR}"
    ),
}


@cache
def present() -> dict[str, list[str]]:
    """Return the lines of the names that there are now, by the names of the lists."""
    homes: dict[int, str] = {}
    made_by_lite = _split(_MADE_BY_LITE)
    return {name: [*lines_of_modules(_split(one.modules), made_by_lite, homes)] for name, one in LISTS.items()}


def _split(texts: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: text.split() for name, text in texts.items()}
