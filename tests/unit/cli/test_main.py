"""The command `zcore`: usage, exit codes, sentences, and standard streams that are closed, full or left."""
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import zcore
from zcore import __main__ as command
from zcore.cli.verbs import demo


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["nonsense"], 2), (["--help"], 0), (["demo", "--help"], 0)])
def test_usage(capsys, arguments, code):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == code
    assert "usage: zcore" in "".join(capsys.readouterr())


def test_alone_it_lists_the_verbs(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "") and "list the arrays and groups at a path" in err


def test_version(capsys):
    with pytest.raises(SystemExit):
        command.main(["--version"])
    assert capsys.readouterr().out == f"zcore {zcore.__version__}\n"


def test_debug_shows_the_traceback():
    with pytest.raises(FileNotFoundError, match="none.npy does not exist"):
        command.main(["info", "none.npy", "--debug"])


def test_interruption(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load", interrupted)
    assert command.main(["demo"]) == 130
    assert capsys.readouterr().err == "zcore demo: interrupted\n"


def noted(error, note):
    """Return an exception with a note."""
    error.add_note(note)
    return error


@pytest.mark.parametrize(("error", "sentence"), [
    (PermissionError(13, "Permission denied", "a b"), "permission denied: 'a b'"),
    (OSError(28, "No space left on device"), "no space left on device"),
    (zcore.errors.StoreError("cannot write 'c'", errno=13), "cannot write 'c'"),
    (ValueError("two\n  lines"), "two lines"),
    (MemoryError(), "MemoryError"),
    (noted(MemoryError(), "Zarr v2"), "Zarr v2: MemoryError"),
    (noted(PermissionError(13, "Permission denied", "a b"), "Zarr v2"), "Zarr v2: permission denied: 'a b'"),
], ids=["file", "no file", "own", "lines", "silent", "noted", "noted file"])
def test_whatever_is_raised_is_one_sentence(monkeypatch, refused, error, sentence):
    def failing(*args, **kwargs):
        raise error

    monkeypatch.setattr(demo, "load", failing)
    assert refused() == sentence


# Standard streams

# Where the output goes, the exit code that is due, and the words of complaint.
BROKEN_OUTPUT = [
    (">&-", "0", ""),
    (">&- 2>&-", "0", ""),
    (">/dev/full", "1", "no space left on device\n"),
]


@pytest.mark.thinned(3, "output", "arguments")
@pytest.mark.parametrize("arguments", ["cat a.npy", "demo --help", "--version"])
@pytest.mark.parametrize(("output", "code", "complaint"), BROKEN_OUTPUT)
def test_output_that_goes_nowhere(save, shell, arguments, output, code, complaint):
    if output == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    save("a.npy", np.arange(6))
    done = shell(f"zcore {arguments} {output}; echo $? >code")
    prefix = "zcore cat: " if arguments.startswith("cat") else "zcore: "
    assert (done.stdout, done.stderr) == ("", complaint and prefix + complaint)
    with open("code") as file:
        assert file.read() == f"{code}\n"


@pytest.mark.parametrize(("arguments", "unbuffered"), [
    (["info", "a.npy"], ""), (["info", "a.npy"], "1"), (["demo", "--help"], ""),
], ids=["at the end", "at once", "help"])
def test_a_reader_that_has_left_is_told_nothing(save, environment, arguments, unbuffered):
    save("a.npy", np.arange(6))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "zcore", *arguments], stdout=writing, stderr=subprocess.PIPE,
                          env={**environment, "PYTHONUNBUFFERED": unbuffered})
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_reader_that_has_left_is_no_error_of_diff(environment, tmp_path):
    for name in "ab":
        zcore.create_array(tmp_path / name, data=np.array([ord(name)]))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "zcore", "diff", "a", "b"], stdout=writing, stderr=subprocess.PIPE,
                          env=environment, cwd=tmp_path)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_head_shows_the_first_line(save, shell):
    save("a.npy", np.arange(6))
    done = shell("zcore cat a.npy | head -n 1")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_errors_that_cannot_be_said_have_their_exit_code(shell, where):
    if where == "2>/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    done = shell(f"zcore info none.npy {where}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_with_a_closed_error_stream_the_rest_is_as_ever(save, shell):
    save("a.npy", np.arange(6))
    done = shell("zcore cat a.npy 2>&-")
    assert done.returncode == 0 and done.stdout.splitlines() == [*"012345"]


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are text there")
def test_names_that_are_no_text(save, shell):
    save(os.fsdecode(b"zon\xe9.npy"), np.arange(6))
    done = shell("LC_ALL=C.UTF-8 PYTHONIOENCODING=utf-8:strict zcore info zon*.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "zon\\udce9.npy" in done.stdout


def test_a_mistyped_option_shows_the_usage_of_its_verb(capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(["info", "a.zarr", "--chunk-map"])
    err = capsys.readouterr().err
    assert caught.value.code == 2 and err.startswith("usage: zcore info ") and "--chunk-map" in err


@pytest.mark.parametrize(("arguments", "words"), [
    (["mv", "a", "b"], "did you mean cp?"), (["inof"], "did you mean info?"), (["tree", "-L", "2"], "mean --depth?"),
    (["xyzzy"], "lists all\n"),
    (["create", "a", "--compression", "gzip"], "did you mean --compressor?"),
    (["create", "a", "--chunsk=3"], "did you mean --chunks?"), (["ls", "--xyzzy"], "--xyzzy\n"),
    (["cp", "a", "b", "--chunk-shape", "3"], "did you mean --chunks?"),
    (["cat", "a", "-o", "b"], "did you mean --out?"), (["cp", "-r", "a", "b"], "a copy has all members"),
    (["completion"], "required: SHELL"),
    (["ls", "a", "b"], "unrecognized arguments: b\n"),
    (["cat", "a", "-1,:2"], "comes behind --"),
])
def test_what_was_meant(capsys, arguments, words):
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2 and capsys.readouterr().err.endswith(words if "\n" in words else f"{words}\n")


@pytest.mark.parametrize("name", ["a zcore.copy b", "d overwrite=True", "in clevel=0 dir"])
def test_messages_have_paths_as_they_were_written(run, name):
    assert f"{name} " in run("info", name)[2]


def test_messages_have_the_words_of_the_command(run, save):
    save("a.npy", np.arange(3))
    assert run("cp", "a.npy", "a.zarr")[0] == 0
    for arguments in (("cp", "a.npy", "a.zarr"), ("create", "a.zarr", "--shape", "10x10", "--dtype", "u1")):
        code, _, err = run(*arguments)
        assert code == 1 and "--overwrite" in err and "overwrite=True" not in err
    assert "zcore cp converts it" in run("attrs", "a.npy", "--set", "a", "1")[2]
    assert run("create", "b.zarr", "--shape", "10x10", "--dtype", "u1")[0] == 0
    assert zcore.open("b.zarr").shape == (10, 10)
    zcore.copy("a.zarr", "a.zip")
    shutil.make_archive("top", "zip", ".", "a.zarr")
    zcore.ReferenceStore({"k": ["/etc/passwd"]}).save("far.json")
    os.mkdir("files")
    shutil.copy("a.npy", "files")
    for arguments, words in (
            (("cp", "a.npy", "a.zip"), "a.zip is there already; --overwrite replaces it"),
            (("attrs", "a.zip", "--set", "a", "1"), "or made as a whole by zcore cp"),
            (("cp", "a.zarr", "b.h5", "--checksum"), "b.h5: a file of this kind has no choice of checksum"),
            (("create", "c.zmeta", "--shape", "3", "--dtype", "u1", "--zarr-format", "zmeta", "--compressor", "zstd"),
             "--compressor blosc:lz4:0"),
            (("verify", "--repair", "a.zip"), f"verify: {os.getcwd()}/a.zip is read-only"),
            (("info", "far.json"), f"info: {os.getcwd()}/far.json holds no"),
            (("cp", "a.zarr", "b.h5", "--compressor", "zstd"), "for HDF5 gzip, gzip:LEVEL, auto or none"),
            (("cp", "a.zarr", "memory://x"), "ends with the command"),
            (("info", "top.zip"), f"{os.getcwd()}/top.zip holds no node; {os.getcwd()}/top.zip/a.zarr is a node"),
            (("info", "files"), f"'a.npy', are opened by their own names, in a shell as {os.getcwd()}/files/*.npy"),
            (("cp", "a.npy", "c.zarr", "--along", "0"), "dimension '0'; with --stack instead of --along, sources"),
            (("refs", "make", "none.h5", "--out", "b.json"), "refs: none.h5 does not exist")):
        code, _, err = run(*arguments)
        assert code == 1 and words in err
    assert "; --allow /etc/ would permit it" in run("refs", "check", "far.json")[1]
    for place in ("zcore.copy", "zcore.copy.zarr", "a/overwrite=True"):
        assert place in run("info", place)[2]
