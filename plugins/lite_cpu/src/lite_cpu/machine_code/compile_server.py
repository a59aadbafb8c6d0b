"""The process that compiles for another one: ``python -m lite_cpu.machine_code.compile_server``.

It reads requests from standard input and writes answers to standard output until the input ends; :mod:`remote`
describes them, and starts this process. A request names the code to run: the process trusts the one that started it.
"""

from __future__ import annotations

import pickle
import sys
import traceback

from lite_cpu.machine_code.cache import code_version
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.objects import KernelCompileError
from lite_cpu.machine_code.remote import VARIABLE, read_message, write_message

__all__ = ["main"]


def main() -> None:
    """Answer requests until standard input ends."""
    while request := read_message(sys.stdin.buffer):
        write_message(sys.stdout.buffer, pickle.dumps(_answer(request)))


def _answer(request: bytes) -> CodeImage | str:
    try:
        version, function = pickle.loads(request)
        if version != code_version():
            return f"the command of {VARIABLE} has {code_version()}, this process has {version}"
        image: CodeImage = function()
        return image
    except KernelCompileError as error:
        return str(error)
    except Exception:
        return f"the command of {VARIABLE} failed:\n{traceback.format_exc()}"


if __name__ == "__main__":
    main()
