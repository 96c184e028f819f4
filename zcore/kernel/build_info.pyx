# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""How the kernel was compiled, and which CPU features it can use.

Compiled, because only the compiler knows: `setup.py` defines the first two macros, the compiler and Cython the others.
A stale debug or sanitizer build looks like any other build from outside. This module names the variant.
"""
cdef extern from *:
    """
    #if defined(__clang__)
      #define ZCORE_COMPILER "Clang " __clang_version__
    #elif defined(__GNUC__)
      #define ZCORE_COMPILER "GCC " __VERSION__
    #else
      #define ZCORE_COMPILER "unknown"
    #endif
    #ifdef NDEBUG
      #define ZCORE_ASSERTIONS 0
    #else
      #define ZCORE_ASSERTIONS 1
    #endif
    /* the builtin takes literals only, and exists on this architecture only */
    #if defined(__x86_64__) || defined(__i386__)
      #define ZCORE_SSE42 (__builtin_cpu_supports("sse4.2") != 0)
      #define ZCORE_AVX2 (__builtin_cpu_supports("avx2") != 0)
    #else
      #define ZCORE_SSE42 0
      #define ZCORE_AVX2 0
    #endif
    #ifdef __ARM_NEON
      #define ZCORE_NEON 1
    #else
      #define ZCORE_NEON 0
    #endif
    """
    const char *ZCORE_VARIANT
    const char *ZCORE_LIBS
    const char *ZCORE_COMPILER
    bint ZCORE_ASSERTIONS
    bint ZCORE_SSE42
    bint ZCORE_AVX2
    bint ZCORE_NEON
    unsigned long CYTHON_HEX_VERSION


def build_info():
    """Return how the kernel was compiled, as a dict.

    `variant` is ``release``, ``debug`` or ``sanitize``; `libraries` is ``bundled`` or ``system``; `compiler` and
    `cython` name the two compilers with their versions; `assertions` tells whether C's assertions are compiled in.

    >>> sorted(build_info())
    ['assertions', 'compiler', 'cython', 'libraries', 'variant']
    """
    cdef unsigned long version = CYTHON_HEX_VERSION    # as PY_VERSION_HEX: major, minor, micro in the upper bytes
    return {
        "variant": ZCORE_VARIANT.decode("ascii"),
        "libraries": ZCORE_LIBS.decode("ascii"),
        "compiler": ZCORE_COMPILER.decode("ascii").strip(),
        "cython": f"{version >> 24 & 255}.{version >> 16 & 255}.{version >> 8 & 255}",
        "assertions": ZCORE_ASSERTIONS,
    }


def cpu_features():
    """Return which of the optional instruction sets this CPU has, as a dict. The kernel selects by them at run time.

    >>> sorted(cpu_features())
    ['avx2', 'neon', 'sse4.2']
    """
    return {"sse4.2": ZCORE_SSE42, "avx2": ZCORE_AVX2, "neon": ZCORE_NEON}
