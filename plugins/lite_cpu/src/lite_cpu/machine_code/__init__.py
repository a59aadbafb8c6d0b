"""From LLVM IR to code that can be called: compiling, linking, caching and mapping.

From the ground up: :mod:`image` (code that runs at any address), :mod:`relocations` and :mod:`elf` (an object to an
image), :mod:`loading` (an image in executable memory), :mod:`objects` (IR to an image), :mod:`file_lock` and
:mod:`cache` (images on disk), :mod:`library` (the kernels of a process by address).
"""
