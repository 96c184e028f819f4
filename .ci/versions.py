"""The versions of other libraries that CI has seen, in README and docs: no hand types them.

    python .ci/versions.py --note FILE      adds what the running environment has to FILE
    python .ci/versions.py                  says where the tables differ from what the last run of `.ci/run` has seen
    python .ci/versions.py --write          writes the tables

`.ci/run` notes in `build/seen/`, one file for each Python. `.ci/suites.py` notes its results there, too. A newer
release of a peer does not fail CI: the tables say what was seen when they were written, and are written for a release.
"""
import argparse
import json
import pathlib
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEEN = ROOT / "build" / "seen"
LIBRARIES = {"zarr": "zarr-python", "xarray": "xarray", "dask": "dask", "anndata": "anndata", "icechunk": "Icechunk",
             "virtualizarr": "VirtualiZarr", "cubed": "Cubed", "tensorstore": "tensorstore", "zarrs": "zarrs",
             "asdf": "asdf", "kerchunk": "kerchunk", "obstore": "obstore", "fsspec": "fsspec", "h5py": "h5py",
             "numpy": "NumPy"}
MARKS = re.compile(r"(<!-- (\w+): written by \.ci/versions\.py -->).*?(<!-- end -->)", re.DOTALL)


def note(file, **found):
    """Add what was found in this environment to a file: `packages` and `suites`, each by names."""
    seen = json.loads(file.read_text()) if file.is_file() else {"python": platform.python_version()}
    for kind, values in found.items():
        seen.setdefault(kind, {}).update(values)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(seen, indent=1) + "\n")


def installed():
    """Return the versions of the libraries that this environment has."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def minor(text):
    return ".".join(text.split(".")[:2])


def table(rows):
    return "\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def table_of_versions(seen):
    """One row for each library, one column for each Python."""
    rows = [["library", *(f"Python {minor(one['python'])}" for one in seen)], ["---"] * (1 + len(seen))]
    rows += [[title, *(one["packages"].get(name, "") for one in seen)] for name, title in LIBRARIES.items()
             if any(name in one["packages"] for one in seen)]
    return table(rows)


def table_of_suites(seen):
    """One row for each suite of tests."""
    rows = [["suite", "Python", "tests that pass", "fail without zcore, too", "left out"], ["---"] * 5]
    for one in seen:
        for suite in one.get("suites", {}).values():
            named = ", ".join(f"{LIBRARIES.get(name, name)} {number}" for name, number in suite["versions"].items())
            rows.append([f"{suite['title']} ({named})", minor(one["python"]), str(suite["passed"]),
                         str(suite["theirs"]), str(suite["left_out"])])
    return table(rows)


def line_of_versions(seen):
    """One sentence."""
    def of(one):
        peers = [name for name in LIBRARIES if name in one["packages"]][:7]
        return (f"Python {minor(one['python'])} with "
                + ", ".join(f"{LIBRARIES[name]} {minor(one['packages'][name])}" for name in peers))

    return f"CI ran on {', and on '.join(map(of, seen))}."


MADE = {"versions": table_of_versions, "suites": table_of_suites, "line": line_of_versions}


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--note", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.note:
        note(options.note, packages=installed())
        return
    seen = sorted((json.loads(path.read_text()) for path in SEEN.glob("*.json")),
                  key=lambda one: tuple(map(int, one["python"].split(".")[:2])))
    if not seen:
        sys.exit(f"{SEEN} has nothing: .ci/run leaves there what it has seen")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = MARKS.sub(lambda found: f"{found[1]}{MADE[found[2]](seen)}{found[3]}", text)
        if new != text and options.write:
            page.write_text(new, encoding="utf-8")
        if new != text:
            print(f"{page.relative_to(ROOT)}: {'written' if options.write else 'other versions were seen'}")
    if not options.write:
        print("python .ci/versions.py --write writes what was seen into README and docs")


if __name__ == "__main__":
    main()
