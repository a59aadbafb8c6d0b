"""Building blocks of backends that compile whole partitions. This is a library, not a plugin.

Modules from the lowest layer up: :mod:`fusion`, :mod:`tensors`, :mod:`known_values`, :mod:`sources`, :mod:`equation`,
:mod:`recurrent`, :mod:`lifetimes`, :mod:`disk_cache`, :mod:`options` and :mod:`staging` import no other module of this
package; :mod:`views` builds on :mod:`tensors`, :mod:`destinations` on :mod:`views`, :mod:`chains` on :mod:`fusion`,
:mod:`registry` on :mod:`fusion`, :mod:`tournaments` on :mod:`tensors` and :mod:`disk_cache`.
"""
