"""What backends that compile partitions share; a library, not a plugin.

From the ground up: :mod:`fusion`, :mod:`tensors`, :mod:`known`, :mod:`sources`, :mod:`equation`, :mod:`recurrent` and
:mod:`lifetimes` use nothing else of this package; :mod:`views` are of tensors, :mod:`places` of views, :mod:`chains` of
groups; :mod:`registry` says which function lowers a group; :mod:`staging` compiles what has no shapes yet.
"""
