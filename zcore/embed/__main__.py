"""``python -m zcore.embed``: the flags with which a program in C, C++ or Fortran is built."""
from __future__ import annotations

import argparse
from pathlib import Path

from zcore.config import __version__, get_include

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the library that has `zcore_start` and what Fortran calls.
LIBRARY = "zcore_start"


def flags() -> dict[str, list[str]]:
    """Return a dict of the flags by option, each a list of words."""
    include = get_include()
    return {
        "--cflags": [f"-I{include}"],
        "--libs": [f"-L{Path(include).parent / 'lib'}", f"-l{LIBRARY}", "-ldl", "-lpthread"],
        # The path of the source is a line in it, which may be long.
        "--fortran": ["-ffree-line-length-none", str(Path(include) / "zcore.F90")],
        "--pkgconfigdir": [str(Path(include).parent / "lib" / "pkgconfig")],
        "--cmakedir": [str(Path(include).parent / "lib" / "cmake")],
        "--version": [__version__],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was asked for, in the order of the arguments."""
    known = flags()
    parser = argparse.ArgumentParser("python -m zcore.embed", description="Flags to build a program with zcore.h.")
    helps = {
        "--cflags": "of the compiler", "--libs": "of the linker, for a program that is not Python",
        "--fortran": "the source of the Fortran module, for gfortran", "--version": "of zcore",
        "--pkgconfigdir": "for PKG_CONFIG_PATH", "--cmakedir": "for CMAKE_PREFIX_PATH",
    }
    for option in known:
        parser.add_argument(option, dest="asked", action="append_const", const=option, help=helps[option])
    asked = parser.parse_args(arguments).asked
    if not asked:
        parser.error(f"say what to print: {', '.join(known)}")
    # As a shell puts it into a command: words are cut at spaces, and quotes would stay.
    print(*[word for option in asked for word in known[option]])


if __name__ == "__main__":
    main()
