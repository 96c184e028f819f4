"""``python -m zcore.embed``: the flags with which a program in C, C++ or Fortran is built."""
import argparse
import sys
from pathlib import Path

from zcore.config import __version__, get_include

# Of the library that has `zcore_start` and what Fortran calls.
LIBRARY = "zcore_start"


def flags():
    """Return a dict of the flags by option, each a list of words."""
    include = get_include()
    return {
        "--cflags": [f"-I{include}", f'-DZCORE_PYTHON_DEFAULT="{sys.executable}"'],
        "--libs": [f"-L{Path(include).parent / 'lib'}", f"-l{LIBRARY}", "-ldl", "-lpthread"],
        "--fortran": [str(Path(include) / "zcore.f90")],
        "--pkgconfigdir": [str(Path(include).parent / "lib" / "pkgconfig")],
        "--cmakedir": [str(Path(include).parent / "lib" / "cmake")],
        "--version": [__version__],
    }


def main(arguments=None):
    """Print what was asked for, in the order of the arguments, quoted for a shell."""
    import shlex

    known = flags()
    parser = argparse.ArgumentParser("python -m zcore.embed", description="Flags to build a program with zcore.h.")
    helps = {
        "--cflags": "of the compiler", "--libs": "of the linker, for a program that is not Python",
        "--fortran": "the source of the Fortran module", "--version": "of zcore",
        "--pkgconfigdir": "for PKG_CONFIG_PATH", "--cmakedir": "for CMAKE_PREFIX_PATH",
    }
    for option in known:
        parser.add_argument(option, dest="asked", action="append_const", const=option, help=helps[option])
    asked = parser.parse_args(arguments).asked
    if not asked:
        parser.error(f"say what to print: {', '.join(known)}")
    print(shlex.join([word for option in asked for word in known[option]]))


if __name__ == "__main__":
    main()
