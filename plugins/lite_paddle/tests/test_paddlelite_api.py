"""Paddle-Lite's Python interface on Lite: names, data, and errors where the real one ends the process."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from legacy_writer import Writer

from lite_core.errors import InputError, ModelFormatError
from lite_paddle import paddlelite
from lite_paddle.paddlelite import (
    CLTuneMode,
    CxxConfig,
    CxxPredictor,
    DataLayoutType,
    MobileConfig,
    Opt,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
    Tensor,
    create_paddle_predictor,
)

FIXTURES = Path(__file__).parent / "fixtures"
TINY = Path(__file__).parents[3] / "tests/models/goldens/tiny_conv"


def config_of(model: str | Path = TINY / "legacy", *targets: TargetType) -> CxxConfig:
    config = CxxConfig()
    config.set_model_dir(str(model))
    config.set_valid_places([Place(target) for target in targets or (TargetType.Host,)])
    return config


@pytest.fixture
def predictor() -> CxxPredictor:
    made = create_paddle_predictor(config_of())
    assert isinstance(made, CxxPredictor)
    return made


@pytest.fixture
def image() -> Any:
    with np.load(TINY / "inputs.npz") as inputs:
        (array,) = (inputs[name] for name in inputs.files)
    return array


def expected() -> Any:
    with np.load(TINY / "legacy" / "outputs.npz") as outputs:
        return outputs[outputs.files[0]]


def test_predictor_computes_like_paddle_and_the_caller_owns_the_arrays(predictor: CxxPredictor, image: Any) -> None:
    tensor = predictor.get_input(0)
    assert tensor.shape() == [-1, *image.shape[1:]]
    tensor.from_numpy(image)
    assert (tensor.shape(), tensor.precision(), tensor.target()) == (
        list(image.shape),
        PrecisionType.FP32,
        TargetType.Host,
    )
    predictor.run()
    first = predictor.get_output(0).numpy()
    np.testing.assert_allclose(first, expected(), atol=1e-5)
    kept = first.copy()
    view = predictor.get_output(0).numpy(zero_copy=True)
    tensor.numpy(zero_copy=True)[:] = 0  # written into the input: the next run reads it
    predictor.run()
    assert not np.allclose(predictor.get_output(0).numpy(), kept)
    for array in (first, view):
        np.testing.assert_array_equal(array, kept)
    del predictor
    gc.collect()
    np.testing.assert_array_equal(view, kept)


def test_inputs_given_as_lists(predictor: CxxPredictor, image: Any) -> None:
    (name,) = predictor.get_input_names()
    tensor = predictor.get_input_by_name(name)
    tensor.resize(list(image.shape))
    tensor.set_float_data(image.reshape(-1).tolist())
    predictor.run()
    output = predictor.get_output_by_name(predictor.get_output_names()[0])
    np.testing.assert_allclose(np.reshape(output.float_data(), output.shape()), expected(), atol=1e-5)


def test_model_from_memory(image: Any) -> None:
    program, params = ((TINY / "legacy" / name).read_bytes() for name in ("inference.pdmodel", "inference.pdiparams"))
    config = CxxConfig()
    config.set_valid_places([Place(TargetType.Host)])
    config.set_model_buffer(program, len(program), params, len(params))
    assert config.is_model_from_memory()
    predictor = create_paddle_predictor(config)
    del config
    predictor.get_input(0).from_numpy(image)
    predictor.run()
    np.testing.assert_allclose(predictor.get_output(0).numpy(), expected(), atol=1e-5)


def test_device_that_the_machine_lacks_is_left_out_with_a_warning(
    image: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paddle-Lite ends the process here."""
    monkeypatch.setenv("LITE_BACKENDS", "host")
    predictor = create_paddle_predictor(config_of(TINY / "pir", TargetType.NNAdapter, TargetType.Host))
    predictor.get_input(0).from_numpy(image)
    predictor.run()
    assert "nnadapter: the model is made for it, but it is not installed" in caplog.text
    np.testing.assert_allclose(predictor.get_output(0).numpy(), expected(), atol=1e-5)


@pytest.mark.parametrize(("name", "devices"), [("opencl", "opencl"), ("x86", "x86")])
def test_file_for_any_device_runs(
    name: str, devices: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that Paddle-Lite's converter wrote. Its predictor ends the process if the device is not there."""
    monkeypatch.setenv("LITE_BACKENDS", "host")
    config = MobileConfig()
    with np.load(FIXTURES / "paddle_lite.npz") as archive:
        config.set_model_from_buffer(archive[name].tobytes())
        predictor = create_paddle_predictor(config)
        predictor.get_input(0).from_numpy(archive["x"])
        predictor.run()
        np.testing.assert_allclose(predictor.get_output(0).numpy(), archive["x86_answer"], rtol=0, atol=1e-6)
        (tmp_path / "model.nb").write_bytes(archive[name].tobytes())
    assert f"{devices}: " in caplog.text
    names = Opt().visualize_optimized_nb_model(str(tmp_path / "model.nb"), str(tmp_path / "pictures"))
    assert names == ["Block_0"]
    assert "conv2d/" in (tmp_path / "pictures/Block_0.dot").read_text()


def test_predictors_and_opt_write_files_that_compute_the_same(
    image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "host")
    predictor = create_paddle_predictor(config_of(TINY / "pir", TargetType.X86, TargetType.Host))
    assert isinstance(predictor, CxxPredictor)
    predictor.save_optimized_model(str(tmp_path / "saved"))
    predictor.save_optimized_pb_model(str(tmp_path / "program"))
    opt = Opt()
    opt.set_model_dir(str(TINY / "legacy"))
    opt.set_valid_places("x86")
    opt.set_optimize_out(str(tmp_path / "converted.nb"))
    opt.run()
    assert "written: " in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["converted.nb", "program", "saved.nb"]
    predictors = [create_paddle_predictor(config_of(tmp_path / "program"))]
    for file in ("saved.nb", "converted.nb"):
        config = MobileConfig()
        config.set_model_from_file(str(tmp_path / file))
        predictors.append(create_paddle_predictor(config))
    for predictor in predictors:
        predictor.get_input(0).from_numpy(image)
        predictor.run()
        np.testing.assert_allclose(predictor.get_output(0).numpy(), expected(), atol=1e-5)
    with pytest.raises(InputError, match="there is nothing at 'nowhere'"):
        opt.run_optimize("", "nowhere", "", "naive_buffer", "x86", str(tmp_path / "other"))


def no_input(predictor: CxxPredictor, image: Any) -> None:
    predictor.run()


def wrong_channels(predictor: CxxPredictor, image: Any) -> None:
    predictor.get_input(0).from_numpy(image[:, :1])
    predictor.run()


def wrong_type(predictor: CxxPredictor, image: Any) -> None:
    predictor.get_input(0).from_numpy(image.astype(np.float16))
    predictor.run()


def sequences_of_an_image(predictor: CxxPredictor, image: Any) -> None:
    predictor.get_input(0).from_numpy(image)
    predictor.get_input(0).set_lod([[0, 1, 2]])
    predictor.run()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda predictor, _: predictor.get_input(7), "no input 7: it has 1"),
        (lambda predictor, _: predictor.get_output(-1), "no output -1"),
        (lambda predictor, _: predictor.get_input_by_name("foo"), "no input 'foo'"),
        (lambda predictor, _: predictor.get_output(0).numpy(), "has no data yet"),
        (lambda predictor, _: predictor.get_input(0).set_float_data([1.0]), "resize"),
        (lambda predictor, _: predictor.get_input(0).resize([-1, 3]), "not negative"),
        (no_input, "has no data yet"),
        (wrong_channels, "must have shape"),
        (wrong_type, "float32"),
        (sequences_of_an_image, "the model declares 0"),
    ],
)
def test_where_paddle_lite_ends_the_process_an_exception_is_raised(
    predictor: CxxPredictor, image: Any, act: Callable[[CxxPredictor, Any], object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        act(predictor, image)
    predictor.get_input(0).set_lod([])
    predictor.get_input(0).from_numpy(image)
    predictor.run()  # the predictor is still of use
    np.testing.assert_allclose(predictor.get_output(0).numpy(), expected(), atol=1e-5)


def test_configurations_that_name_too_little(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no model"):
        create_paddle_predictor(CxxConfig())
    with pytest.raises(InputError, match="names no model"):
        create_paddle_predictor(MobileConfig())
    config = CxxConfig()
    config.set_model_dir(str(TINY / "legacy"))
    with pytest.raises(InputError, match="set_valid_places"):
        create_paddle_predictor(config)
    foreign = MobileConfig()
    foreign.set_model_from_buffer(b"no model at all")
    with pytest.raises(ModelFormatError):
        create_paddle_predictor(foreign)


def test_lists_are_held_exactly_or_refused() -> None:
    tensor = Tensor("x")
    tensor.resize([2, 2])
    tensor.set_int8_data([1, -128, 127, 0])
    assert (tensor.int8_data(), tensor.precision()) == ([1, -128, 127, 0], PrecisionType.INT8)
    wrongs: list[Any] = [[300, 0, 0, 0], [0.5, 0, 0, 0]]
    for wrong in wrongs:
        with pytest.raises(InputError, match="from -128 to 127"):
            tensor.set_int8_data(wrong)
    with pytest.raises(InputError, match="holds int8"):
        tensor.float_data()
    tensor.from_numpy([[1, 2], [3, 4]])
    assert tensor.numpy().dtype == np.int64


def test_numbers_and_names_of_the_enumerations() -> None:
    assert (int(TargetType.X86), TargetType(5), str(TargetType.ARM)) == (2, TargetType.OpenCL, "TargetType.ARM")
    assert "LITE_POWER_HIGH" in PowerMode.__members__
    assert Place(TargetType.X86, percision=PrecisionType.INT8, layout=DataLayoutType.NCHW).is_valid()
    assert not Place(TargetType.Unk).is_valid()


def test_settings_without_effect_are_kept() -> None:
    config = config_of()
    config.set_threads(2)
    config.set_power_mode(PowerMode.LITE_POWER_LOW)
    config.set_nnadapter_device_names(["a"])
    config.set_opencl_tune(CLTuneMode.CL_TUNE_NONE, "folder", "name", 4)
    config.set_passes_internal([])
    config.add_discarded_pass("lite_conv_conv_fuse_pass")
    assert (config.threads(), config.power_mode()) == (2, PowerMode.LITE_POWER_LOW)
    assert config.nnadapter_device_names() == ["a"]


def test_sequences_of_several_lengths(tmp_path: Path) -> None:
    """The sums of the sequences, whose offsets ``set_lod`` gives; without them all rows are one sequence."""
    writer = Writer()
    writer.feed("words", 0, dims=(-1, 2))
    writer.program.blocks[0].vars[-1].type.dense_tensor.lod_level = 1
    writer.variable("sums", (-1, 2))
    outputs = {"Out": ["sums"], "MaxIndex": ["index"]}
    writer.variable("index", (-1, 2))
    writer.op("sequence_pool", {"X": ["words"]}, outputs, {"pooltype": "SUM", "pad_value": 0.0})
    writer.fetch("sums", 0)
    (tmp_path / "__model__").write_bytes(writer.program.SerializeToString())
    predictor = create_paddle_predictor(config_of(tmp_path))
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    words = predictor.get_input(0)
    words.from_numpy(rows)
    for lod, expected_sums in (([], [rows.sum(0)]), ([[0, 2, 5]], [rows[:2].sum(0), rows[2:].sum(0)])):
        words.set_lod(lod)
        predictor.run()
        np.testing.assert_array_equal(predictor.get_output(0).numpy(), expected_sums)
    words.set_lod([[0, 1], [0, 2, 5]])
    with pytest.raises(InputError, match="2 levels of offsets are given, the model declares 1"):
        predictor.run()


SCRIPT = """
import sys
from paddlelite.lite import *
import paddlelite.lite as again
config = CxxConfig()
config.set_model_dir(sys.argv[1])
config.set_valid_places([Place(TargetType.Host, PrecisionType.FP32)])
predictor = again.create_paddle_predictor(config)
print(predictor.get_input_names(), __name__)
"""


def test_unchanged_script_runs(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "lite_paddle.paddlelite", str(script), str(TINY / "legacy")]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.stdout.endswith("__main__\n"), completed.stderr
    missing = subprocess.run([*command[:3], "nothing.py"], capture_output=True, text=True)
    assert (missing.returncode, "no script 'nothing.py'" in missing.stderr) == (1, True)


@pytest.mark.full("paddle-lite")
def test_every_name_of_the_real_module_exists(paddle_lite_python: Path) -> None:
    """The names are asked of the wheel of Paddle-Lite."""
    ask = (
        "from paddlelite import lite\n"
        "for name in dir(lite):\n"
        "    if not name.startswith('_'):\n"
        "        for part in dir(getattr(lite, name)):\n"
        "            print(name, part if not part.startswith('_') else '')\n"
    )
    completed = subprocess.run([paddle_lite_python, "-c", ask], capture_output=True, text=True, check=True)
    pairs = {tuple(line.split()) for line in completed.stdout.splitlines()}
    names = {pair[0] for pair in pairs}
    assert {"CxxConfig", "Tensor", "create_paddle_predictor"} <= names
    missing = [name for name in names if not hasattr(paddlelite, name)]
    for name, part in (pair for pair in pairs if len(pair) == 2 and pair[1] != "name"):  # only members have it here
        if not hasattr(getattr(paddlelite, name), part):
            missing.append(f"{name}.{part}")
    assert not missing
