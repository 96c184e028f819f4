"""What type checkers say about zcore, in the eyes of a user: it must be complete, and programs must be without errors.

`python .ci/check_types.py` needs mypy, pyright (``pyright[nodejs]`` of PyPI) and what the bridges need. It makes a
virtual environment of its own, which finds these packages too, and copies the package there without a build: so type
checkers find it as any installed package, and the environment that this runs in stays as it is.

1. ``pyright --verifytypes zcore --ignoreexternal`` must know the type of every symbol of every module. pyright takes
   each module for public whose name has no underscore.
2. ``mypy --strict`` and pyright in strict mode must find nothing in the programs in `tests/types`.
"""
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment_of(folder):
    """Make a virtual environment in which zcore comes before all that this one has; return its Python."""
    venv.create(folder)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (site / "others.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("-packages")))
    package = site / "zcore"
    for path in (ROOT / "zcore").rglob("*"):
        if path.suffix in (".py", ".pyi", ".typed"):
            target = package / path.relative_to(ROOT / "zcore")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return folder / "bin" / "python"


def run(python, folder, *command):
    """Return the exit code and the output of a checker that is called in a folder, for the environment of `python`."""
    # pyright asks the first `python` in PATH for its packages.
    environment = {**os.environ, "PYTHONPATH": "", "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, text=True, capture_output=True, env=environment)
    return done.returncode, done.stdout + done.stderr


def unknown_symbols(python):
    """Return the symbols whose types are not known, each with pyright's reason."""
    _, text = run(python, tempfile.gettempdir(), "pyright", "--verifytypes", "zcore", "--ignoreexternal",
                  "--outputjson")
    found = json.loads(text)["typeCompleteness"]
    counts = found["exportedSymbolCounts"], found["otherSymbolCounts"]
    n_known, n_all = sum(count["withKnownType"] for count in counts), sum(sum(count.values()) for count in counts)
    print(f"pyright --verifytypes: {n_known} of {n_all} symbols, "
          f"{counts[0]['withKnownType']} of {sum(counts[0].values())} that are exported")
    n_modules = sum(1 for _ in (ROOT / "zcore").rglob("*.py"))
    if n_all < 3000 or len(found["modules"]) < n_modules // 2:
        return [f"pyright has looked at {len(found['modules'])} modules and {n_all} symbols: there are more"]
    return [f"{symbol['name']}: {'; '.join(each['message'] for each in symbol['diagnostics'])}"
            for symbol in found["symbols"] if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]


def main():
    with tempfile.TemporaryDirectory() as work:
        python = environment_of(Path(work, "environment"))
        unknown = unknown_symbols(python)
        print(*unknown, sep="\n", end="\n" if unknown else "")
        failed = bool(unknown)
        programs = Path(work, "programs")
        shutil.copytree(ROOT / "tests" / "types", programs, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
        (programs / "pyrightconfig.json").write_text(
            json.dumps({"include": ["."], "typeCheckingMode": "strict", "pythonVersion": "3.11"}))
        for command in (("mypy", "--strict", "--python-version", "3.11", "--python-executable", str(python), "."),
                        ("pyright",)):
            code, text = run(python, programs, *command)
            print(f"{command[0]}: {text.strip()}")
            failed = failed or code != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
