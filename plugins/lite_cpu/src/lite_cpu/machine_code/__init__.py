"""From LLVM IR to code that can be called: compiling, linking, caching and mapping."""
