"""The sessions of docs/cli.md, typed: what is printed is what the page says."""
import re
import shlex
import sys
from pathlib import Path

import pytest

from zcore.__main__ import main
from zcore.cli.parser import VERBS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("session", SESSIONS, ids=range(len(SESSIONS)))
def test_a_session(shell, capsys, session):
    shown = ""
    for line in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
        shown += f"$ {line}\n"
        if "|" in line:
            # Its own Python: for another version, the path of modules would be wrong.
            done = shell(f"exec 2>&1; {line}".replace("| python ", f'| "{sys.executable}" '))
            shown += done.stdout
        else:
            main(shlex.split(line)[1:])
            shown += "".join(capsys.readouterr())
    assert shown == session


def test_every_verb_is_on_the_page():
    table = PAGE.partition("| verb |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(VERBS)
