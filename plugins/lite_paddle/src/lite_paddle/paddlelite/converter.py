"""``Opt``, Paddle-Lite's converter as a class: ``lite opt`` with its settings as methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lite_core import __version__
from lite_core.checks import require
from lite_core.errors import ConversionError, InputError, LiteError

__all__ = ["Opt"]


class Opt:
    """The converter of Paddle-Lite. Its settings are the options of ``lite opt``, which tells what each of them does.

    Every method raises a :class:`LiteError` where Paddle-Lite's ends the process.
    """

    def __init__(self) -> None:
        self._options: dict[str, str] = {}

    # **** settings ****

    def set_model_dir(self, path: str) -> None:
        """Set the folder of the model: ``--model_dir``."""
        self._set("model_dir", path)

    def set_modelset_dir(self, path: str) -> None:
        """Set a folder of model folders, each of which is converted: ``--model_set``."""
        self._set("model_set", path)

    def set_model_file(self, path: str) -> None:
        """Set the file of the program: ``--model_file``."""
        self._set("model_file", path)

    def set_param_file(self, path: str) -> None:
        """Set the file of the parameters: ``--param_file``."""
        self._set("param_file", path)

    def set_valid_places(self, targets: str) -> None:
        """Set the devices, such as ``"opencl,arm"``: ``--valid_targets``."""
        self._set("valid_targets", targets)

    def set_optimize_out(self, path: str) -> None:
        """Set the file to write, whose ending may be left out: ``--optimize_out``."""
        self._set("optimize_out", path)

    def set_model_type(self, kind: str) -> None:
        """Set what is written, ``"naive_buffer"``, ``"protobuf"`` or ``"lite"``: ``--optimize_out_type``."""
        self._set("optimize_out_type", kind)

    def enable_fp16(self) -> None:
        """Choose kernels that compute in float16: ``--enable_fp16``."""
        self._switch("enable_fp16", True)

    def set_quant_model(self, quantize: bool) -> None:
        """Store weights in fewer bits: ``--quant_model``."""
        self._switch("quant_model", quantize)

    def set_quant_type(self, kind: str) -> None:
        """Set the element type of the stored weights, ``"QUANT_INT8"`` or ``"QUANT_INT16"``: ``--quant_type``."""
        self._set("quant_type", kind)

    def set_sparse_model(self, sparse: bool) -> None:
        """Ask for sparse kernels, which Lite does not have: ``--sparse_model``."""
        self._switch("sparse_model", sparse)

    def set_sparse_threshold(self, threshold: float) -> None:
        """Set the part of zeros from which a weight is sparse, 0 to 1: ``--sparse_threshold``."""
        self._set("sparse_threshold", str(threshold))

    def record_model_info(self, record: bool) -> None:
        """Write lists of the operators and kernels beside the model: ``--record_tailoring_info``."""
        self._switch("record_tailoring_info", record)

    def set_passes_internal(self, passes: Sequence[str] = ()) -> None:
        """Change nothing: Lite chooses the passes over the graph."""
        require(not isinstance(passes, str), "passes", "a list of names", passes)

    # **** work ****

    def run(self) -> None:
        """Convert the model.

        Raises:
            InputError: a setting is missing or invalid.
            ModelFormatError: the model is damaged, or of another format.
            ConversionError: a target has no kernel for some operators; all are listed.
        """
        self._call(self._options)

    def run_optimize(
        self, model_dir: str, model_file: str, param_file: str, model_type: str, valid_places: str, optimize_out: str
    ) -> None:
        """Convert a model; an empty text leaves an argument out. See :meth:`run`."""
        given = {
            "model_dir": model_dir,
            "model_file": model_file,
            "param_file": param_file,
            "optimize_out_type": model_type,
            "valid_targets": valid_places,
            "optimize_out": optimize_out,
        }
        self._call({**self._options, **{name: value for name, value in given.items() if value}})

    def check_if_model_supported(self, print_ops_info: bool = False) -> None:
        """Print whether the targets can run the model, and why not: ``--print_model_ops``.

        Raises:
            ConversionError: they cannot, for the reasons that were printed.
        """
        if self._call({**self._options, "print_model_ops": "true"}):
            targets = self._options.get("valid_targets", "arm")
            raise ConversionError(f"the targets {targets} cannot run the model", ["the reasons are printed above"])

    def print_all_ops(self) -> None:
        """Print the operators, and which targets have them: ``--print_all_ops``."""
        self._print("print_all_ops")

    def print_all_ops_in_md_dormat(self) -> None:
        """Print the same as a Markdown table; the name is Paddle-Lite's."""
        self._print("print_all_ops_in_md_format")

    def print_supported_ops(self) -> None:
        """Print the operators of the chosen targets: ``--print_supported_ops``."""
        self._print("print_supported_ops")

    def display_kernels_info(self) -> None:
        """Print the names of the operators: ``--display_kernels``."""
        self._print("display_kernels")

    def help(self) -> None:
        """Print the options of ``lite opt``, which are the settings of this class."""
        self._call({"help": ""})

    executablebin_help = help

    def version(self) -> str:
        """Return the version of Lite."""
        return f"lite {__version__}"

    def visualize_optimized_nb_model(self, model: str, folder: str) -> list[str]:
        """Write the blocks of a converted file as pictures in Graphviz's language.

        Args:
            model: a file of Paddle-Lite's converter (``.nb``).
            folder: where ``Block_0.dot``, ``Block_1.dot`` ... are written.

        Returns:
            The names of the blocks, which are those of the files without their ending.

        Raises:
            ModelFormatError: the file is damaged, or of another format.
            InputError: the folder cannot be written.
        """
        from lite_paddle.paddlelite.drawing import draw_blocks

        return draw_blocks(Path(model), Path(folder))

    def _set(self, option: str, value: str) -> None:
        require(isinstance(value, str), f"--{option}", "text", value)
        self._options[option] = value

    def _switch(self, option: str, value: bool) -> None:
        require(isinstance(value, bool), f"--{option}", "True or False", value)
        self._options[option] = "true" if value else "false"

    def _print(self, option: str) -> None:
        kept = {name: value for name, value in self._options.items() if name == "valid_targets"}
        self._call({**kept, option: "true"})

    def _call(self, options: dict[str, str]) -> int:
        """Call the command, and return its exit status."""
        try:
            import click

            from lite_paddle.commands.opt import command
        except ModuleNotFoundError as error:
            raise LiteError(f"Opt needs the package lite-tools ({error}): pip install lite-tools") from error
        words = [word for name, value in options.items() for word in (f"--{name}", value) if word]
        try:
            return int(command.main(words, prog_name="lite opt", standalone_mode=False) or 0)
        except click.UsageError as error:
            raise InputError(error.format_message()) from error
