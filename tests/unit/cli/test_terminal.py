"""The command as a person uses it: in a real pseudo-terminal, in pipes that close, with Ctrl-C."""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import zcore
from zcore.cli.show import printed

ESCAPE = "\x1b["


class Terminal:
    """A command whose standard streams are a terminal."""

    def __init__(self, environment, arguments, before="pass", **more):
        self.screen, terminal = pty.openpty()
        code = f"import sys; from zcore.__main__ import main; {before}; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], stdin=terminal, stdout=terminal, stderr=terminal,
            env={**environment, "TERM": "xterm-256color", "COLUMNS": "80", **more}, start_new_session=True)
        os.close(terminal)
        self.shown = ""

    def wait_for(self, text=None):
        """Read until a text is shown, or to the end; returns all that was shown."""
        end = time.monotonic() + 60
        while text is None or text not in self.shown:
            assert select.select([self.screen], [], [], max(0, end - time.monotonic()))[0], self.shown
            try:
                letters = os.read(self.screen, 4096)
            except OSError:    # the terminal has no program left
                letters = b""
            if not letters:
                assert text is None, self.shown
                break
            self.shown += letters.decode(errors="replace")
        return self.shown

    def end(self):
        """Return the exit code and all that was shown, when the command is done."""
        shown = self.wait_for()
        os.close(self.screen)
        return self.process.wait(60), shown


@pytest.fixture
def terminal(environment):
    """Return a function that runs a command in a terminal."""
    kept = {name: value for name, value in environment.items() if name != "NO_COLOR"}
    return lambda *arguments, **more: Terminal(kept, arguments, **more)


def test_colours_on_a_terminal(terminal, weather):
    assert terminal("ls", weather).end() == (0, f"{ESCAPE}34m2016/{ESCAPE}0m\r\nheight\r\n")


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_none_are_wanted(terminal, weather, more):
    assert terminal("ls", weather, **more).end() == (0, "2016/\r\nheight\r\n")


def test_no_colours_into_a_file(shell, weather):
    done = shell("zcore tree weather.zarr; zcore info weather.zarr/height --chunks; zcore attrs weather.zarr")
    assert (done.returncode, done.stderr) == (0, "") and ESCAPE not in done.stdout


def test_a_bar_on_a_terminal_and_nothing_left_of_it(terminal):
    code, shown = terminal("demo", "--no-picture").end()
    assert code == 0
    assert "\rwriting and reading 50 % " in shown and f"{ESCAPE}32m{'█' * 12}{'░' * 12}{ESCAPE}0m" in shown
    assert re.match("█+░*\x1b\\[0m\r {40,}\r[^ ]", shown[shown.rindex("█" * 20):])


def test_a_bar_without_colours_and_beyond_ascii(terminal):
    _, shown = terminal("demo", "--no-picture", NO_COLOR="1", PYTHONIOENCODING="ascii").end()
    assert f"\rwriting and reading 50 % {'#' * 12}{'-' * 12}" in shown and ESCAPE not in shown


def test_plain_lines_elsewhere(monkeypatch, capsys):
    clock = iter(range(0, 10**6, 6))
    monkeypatch.setattr(printed.time, "monotonic", lambda: next(clock))
    with printed.ProgressLine("copying") as progress:
        for i in range(4):
            progress.to(i + 1, 4)
    assert capsys.readouterr().err.splitlines() == ["copying 50 %"]


def test_ctrl_c_ends_with_one_sentence_and_130(terminal):
    zcore.create_array("large.zarr", shape=(4000, 1000), chunks=(1000, 1000), dtype="u1", fill_value=7)
    # Ctrl-C is ignored by the children of what runs in the background, as these tests may.
    command = terminal("cat", "large.zarr", "--all", before="import signal, zcore.cli.selection as s; s.SLAB_NBYTES = "
                       "10**6; signal.signal(signal.SIGINT, signal.default_int_handler)")
    command.wait_for("7 7 7")
    os.killpg(command.process.pid, signal.SIGINT)
    code, shown = command.end()
    assert code == 130 and shown.endswith("zcore cat: interrupted\r\n") and "Traceback" not in shown


def test_bytes_are_not_for_a_terminal(terminal, weather):
    code, shown = terminal("cat", "weather.zarr/height", "--format", "raw").end()
    assert (code, shown) == (1, "zcore cat: --format raw cannot go to a terminal: name a file by --out, or send it "
                                "to another program\r\n")


@pytest.mark.parametrize("line", [
    "zcore cat large.zarr | head -n 1", "zcore cat --json large.zarr | head -c 9", "zcore ls -r many.zarr | head -n 1",
    "zcore cat large.zarr --format raw | head -c 9 | wc -c", "zcore info --json --chunks large.zarr | head -n 1",
])
def test_a_reader_that_has_seen_enough(shell, line):
    if "many" in line:
        group = zcore.create_group("many.zarr")
        for i in range(20):
            group.create_group(f"a{i}")
    else:
        zcore.create_array("large.zarr", data=np.ones((200, 500), "u1"))
    done = shell(line)
    assert done.stderr == "" and done.stdout.strip()


def test_debug_shows_where_an_error_comes_from(shell):
    zcore.create_array("a.zarr", shape=3, dtype="i4")
    plain, all_of_it = shell("zcore cat a.zarr 9"), shell("zcore cat a.zarr 9 --debug")
    assert len(plain.stderr.splitlines()) == 1 and plain.returncode == 1
    assert "Traceback" in all_of_it.stderr and all_of_it.returncode == 1


@pytest.mark.parametrize(("shell_name", "line", "expected"), [
    ("bash", 'source c; COMP_WORDS=(zcore d); COMP_CWORD=1; _zcore; echo "${COMPREPLY[@]}"', "diff doctor demo"),
    ("bash", 'source c; COMP_WORDS=(zcore ls --r); COMP_CWORD=2; _zcore; echo "${COMPREPLY[@]}"', "--recursive"),
    ("bash", 'source c; COMP_WORDS=(zcore cat --format ""); COMP_CWORD=3; _zcore; echo "${COMPREPLY[@]}"',
     "text npy raw"),
    ("bash", 'source c; COMP_WORDS=(zcore completion f); COMP_CWORD=2; _zcore; echo "${COMPREPLY[@]}"', "fish"),
    ("zsh", "autoload -Uz compinit; compinit -u -d dump; source ./c; echo ${_comps[zcore]}", "_zcore"),
    ("fish", "source c; complete -C'zcore ls --rec'", "--recursive"),
    ("fish", "source c; complete -C'zcore completion z'", "zsh"),
])
def test_completion(shell, environment, shell_name, line, expected):
    import shutil

    if shutil.which(shell_name) is None:
        pytest.skip(f"no {shell_name} on this machine")
    with open("c", "w") as file:
        file.write(shell(f"zcore completion {shell_name}").stdout)
    done = subprocess.run([shell_name, "-c", line], capture_output=True, text=True, env={**environment, "HOME": "."})
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_terminal_gets_the_ends_of_a_large_array(terminal, tmp_path):
    zcore.save(tmp_path / "a.zarr", np.arange(1500))
    path = tmp_path / "a.zarr"
    assert terminal("cat", path, NO_COLOR="1").end() == (
        0, "[   0    1    2 ... 1497 1498 1499]\r\n1500 elements, --all prints them\r\n")
    assert terminal("cat", path, "--all").end()[1].count("\r\n") == 1500
    assert terminal("cat", path, ":1000").end()[1].count("\r\n") == 1000
