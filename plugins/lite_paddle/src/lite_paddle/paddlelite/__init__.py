"""Paddle-Lite's Python interface, on Lite: import it in the place of ``paddlelite.lite``.

Every class, method and number has the name that Paddle-Lite gives it. Where Paddle-Lite ends the process, an exception
of :mod:`lite_core.errors` is raised; where it returns a view of memory that it reuses, a copy is returned::

    from lite_paddle.paddlelite import MobileConfig, create_paddle_predictor

    config = MobileConfig()
    config.set_model_from_file("mobilenet.nb")
    predictor = create_paddle_predictor(config)
    predictor.get_input(0).from_numpy(image)
    predictor.run()
    scores = predictor.get_output(0).numpy()

``python -m lite_paddle.paddlelite SCRIPT`` runs a script that imports ``paddlelite.lite``, unchanged.
"""

from __future__ import annotations

from lite_paddle.paddlelite.configs import CxxConfig, MobileConfig
from lite_paddle.paddlelite.converter import Opt
from lite_paddle.paddlelite.enums import (
    CLPrecisionType,
    CLTuneMode,
    DataLayoutType,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
)
from lite_paddle.paddlelite.predictors import CxxPredictor, LightPredictor, create_paddle_predictor
from lite_paddle.paddlelite.tensors import Tensor

__all__ = [
    "CLPrecisionType",
    "CLTuneMode",
    "CxxConfig",
    "CxxPredictor",
    "DataLayoutType",
    "LightPredictor",
    "MobileConfig",
    "Opt",
    "Place",
    "PowerMode",
    "PrecisionType",
    "TargetType",
    "Tensor",
    "create_paddle_predictor",
]
