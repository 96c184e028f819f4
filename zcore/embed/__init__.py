"""Arrays for programs in C, C++ and Fortran, and for modules in Cython, numba and cffi.

`zcore/include/zcore.h` is what such a program includes; `docs/embedding` has a page for each. Importing this module
makes the table of functions that the header looks for.

Attributes
----------
addresses : dict
    Of each function of `zcore.h` by name: the address, for numba, cffi and ctypes.

Examples
--------
>>> import zcore.embed
>>> sorted(zcore.embed.addresses)[:3]
['zcore_chunk_shape', 'zcore_close', 'zcore_create']
"""
from zcore.embed import calls
from zcore.kernel.embed import table

table.install(calls)
addresses: dict[str, int] = table.ADDRESSES
_C_API = table.CAPSULE
