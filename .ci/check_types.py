"""What type checkers say about zcore, in the eyes of a user: it must be complete, and programs must be without errors.

`python .ci/check_types.py` runs in a virtual environment that has mypy, pyright (``pyright[nodejs]`` of PyPI) and what
the bridges need. It copies the package there, as type checkers find other installed packages, without a build.

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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_sources(package):
    """Copy what type checkers read of zcore."""
    shutil.rmtree(package, ignore_errors=True)
    for path in (ROOT / "zcore").rglob("*"):
        if path.suffix in (".py", ".pyi", ".typed"):
            target = package / path.relative_to(ROOT / "zcore")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def run(folder, *command):
    """Return the exit code and the output of a checker that is called in a folder."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": ""})
    return done.returncode, done.stdout + done.stderr


def unknown_symbols():
    """Return the symbols whose types are not known, each with pyright's reason."""
    _, text = run(tempfile.gettempdir(), "pyright", "--verifytypes", "zcore", "--ignoreexternal", "--outputjson",
                  "--pythonpath", sys.executable)
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
    if sys.prefix == sys.base_prefix:
        sys.exit("run this in a virtual environment: it copies zcore there")
    copy_sources(Path(sysconfig.get_path("purelib")) / "zcore")
    unknown = unknown_symbols()
    print(*unknown, sep="\n", end="\n" if unknown else "")
    failed = bool(unknown)
    with tempfile.TemporaryDirectory() as work:
        programs = Path(work, "programs")
        shutil.copytree(ROOT / "tests" / "types", programs, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
        (programs / "pyrightconfig.json").write_text(
            json.dumps({"include": ["."], "typeCheckingMode": "strict", "pythonVersion": "3.11"}))
        for command in (("mypy", "--strict", "--python-version", "3.11", "."),
                        ("pyright", "--pythonpath", sys.executable)):
            code, text = run(programs, *command)
            print(f"{command[0]}: {text.strip()}")
            failed = failed or code != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
