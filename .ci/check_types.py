"""What type checkers say about zcore, in the eyes of a user: it must be complete, and programs must be without errors.

`python .ci/check_types.py` runs in a virtual environment that has mypy, pyright (``pyright[nodejs]`` of PyPI) and what
the bridges need. It copies the package there, as type checkers find other installed packages, without a build.

1. ``pyright --verifytypes zcore --ignoreexternal`` must know the type of every symbol that is public, or that a public
   one leads to. pyright takes each module for public whose name has no underscore. Of zcore these are public::

       zcore, zcore.asdf, .blosc, .codecs, .config, .dask, .errors, .mpi, .storage, .typing, .xarray, .zarr

   So pyright is shown a folder with these alone. The others are found behind it, when one of these imports them.
   Shown the whole package, it counts the internal modules as public, many functions of which have no annotations: it
   says 59 %. An ``__all__`` makes no difference to it; only an underscore in the name of a module or a package would.
2. ``mypy --strict`` and pyright in strict mode must find nothing in the programs in `tests/types`.
"""
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = ("py.typed", "__init__.pyi", "asdf/__init__.pyi", "blosc.py", "codecs/__init__.py", "config.py",
          "dask/__init__.py", "errors.py", "mpi/__init__.py", "storage.py", "typing.py", "xarray/__init__.py",
          "zarr/__init__.py")


def copy_sources(package):
    """Copy what type checkers read of zcore."""
    shutil.rmtree(package, ignore_errors=True)
    for path in (ROOT / "zcore").rglob("*"):
        if path.suffix in (".py", ".pyi", ".typed"):
            target = package / path.relative_to(ROOT / "zcore")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def run(folder, *command, path=""):
    """Return the exit code and the output of a checker that is called in a folder."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(path)})
    return done.returncode, done.stdout + done.stderr


def unknown_symbols(work):
    """Return the public symbols whose types are not known, each with pyright's reason."""
    for name in PUBLIC:
        target = work / "zcore" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "zcore" / name, target)
    _, text = run(work.parent, "pyright", "--verifytypes", "zcore", "--ignoreexternal", "--outputjson",
                  "--pythonpath", sys.executable,
                  path=os.pathsep.join([str(work), sysconfig.get_path("purelib")]))
    found = json.loads(text)["typeCompleteness"]
    counts = found["exportedSymbolCounts"], found["otherSymbolCounts"]
    n_known, n_all = sum(count["withKnownType"] for count in counts), sum(sum(count.values()) for count in counts)
    print(f"pyright --verifytypes: {n_known} of {n_all} symbols, "
          f"{counts[0]['withKnownType']} of {sum(counts[0].values())} that are exported")
    if counts[0]["withKnownType"] < 200 or n_all < 1000 or len(found["modules"]) < len(PUBLIC) - 1:
        return [f"pyright has looked at {len(found['modules'])} modules and {n_all} symbols: there are more"]
    return [f"{symbol['name']}: {'; '.join(each['message'] for each in symbol['diagnostics'])}"
            for symbol in found["symbols"] if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]


def main():
    if sys.prefix == sys.base_prefix:
        sys.exit("run this in a virtual environment: it copies zcore there")
    copy_sources(Path(sysconfig.get_path("purelib")) / "zcore")
    failed = False
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        unknown = unknown_symbols(work / "verified" / "public")
        print(*unknown, sep="\n", end="\n" if unknown else "")
        programs = work / "programs"
        shutil.copytree(ROOT / "tests" / "types", programs, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
        (programs / "pyrightconfig.json").write_text(
            json.dumps({"include": ["."], "typeCheckingMode": "strict", "pythonVersion": "3.11"}))
        for command in (("mypy", "--strict", "--python-version", "3.11", "."),
                        ("pyright", "--pythonpath", sys.executable)):
            code, text = run(programs, *command)
            print(f"{command[0]}: {text.strip()}")
            failed = failed or code != 0
    sys.exit(1 if failed or unknown else 0)


if __name__ == "__main__":
    main()
