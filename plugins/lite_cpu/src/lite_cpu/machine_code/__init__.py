"""Machine code: compiling LLVM IR, linking, caching and loading.

The modules, bottom up: :mod:`image` (code that runs at any address), :mod:`relocations` and :mod:`elf` (link an object
file into an image), :mod:`loading` (load images into executable memory), :mod:`objects` (compile IR to an image),
:mod:`file_lock` and :mod:`cache` (keep images on disk), :mod:`library` (the kernels of a process and their addresses).
"""
