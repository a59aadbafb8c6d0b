"""Paddle-Lite's model files (``.nb``): their content as immutable objects, read from bytes and written to bytes.

* :mod:`~lite_paddle.paddle_lite.program`: blocks, variables, operators with typed attributes, parameters.
* :mod:`~lite_paddle.paddle_lite.container`: ``read_model``, ``decode`` and ``encode``, for whole files.
* :mod:`~lite_paddle.paddle_lite.program_desc`: conversion from and to Paddle's ProgramDesc messages.
"""
