"""Print the completion of a shell for zcore.

It is made from the arguments of the verbs. A word that is neither an option nor a verb is completed as a file's name.

Examples:
  zcore completion bash >> ~/.bashrc
  zcore completion zsh > ~/.zfunc/_zcore
  zcore completion fish > ~/.config/fish/completions/zcore.fish
"""
from __future__ import annotations

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    import argparse
SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from zcore.cli.parser import VERBS, parser_of

    verbs = dict(_verbs_of(parser_of(*VERBS)))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](
        verbs, {name: summary for name, (_, summary) in VERBS.items()}), end="")
    return 0


def _verbs_of(parser):
    """Yield each verb, and a list of its options and sub-verbs: (words, help, choices, whether a value follows)."""
    for action in parser._actions:
        if action.dest == "verb":
            for name, verb in action.choices.items():
                yield name, [word for one in verb._actions for word in _words_of(one)]


def _words_of(action):
    if action.option_strings:
        yield (list(action.option_strings), (action.help or "") % vars(action),
               [str(choice) for choice in action.choices or ()], action.nargs != 0)
    elif action.choices:
        yield list(map(str, action.choices)), "", [], False


def _bash(verbs, summaries):
    cases = []
    for name, words in verbs.items():
        plain = " ".join(word for names, *_ in words for word in names)
        values = "".join(f'\n            {"|".join(names)}) words="{" ".join(choices)}"' + chr(10)
                         + '                COMPREPLY=($(compgen -W "$words" -- "$word")); return ;;'
                         for names, _, choices, _ in words if choices)
        values = values and f'\n        case "$before" in{values}\n        esac'
        cases.append(f'    {name}){values}\n        words="{plain}" ;;')
    return f"""# zcore: completion for bash
_zcore() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{' '.join(summaries)} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{chr(10).join(cases)}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _zcore zcore
"""


def _zsh(verbs, summaries):
    cases = []
    for name, words in verbs.items():
        lines = [_zsh_option(*word) for word in words if word[0][0].startswith("-")]
        choices = [" ".join(names) for names, *_ in words if not names[0].startswith("-")]
        lines.append(f"'1:what:({choices[0]})'" if choices else "'*:path:_files'")
        if choices:
            lines.append("'*:path:_files'")
        cases.append(f"        {name}) _arguments {' '.join(lines)} ;;")
    listed = "\n".join(f"        {_quoted(f'{name}:{summary}')}" for name, summary in summaries.items())
    return f"""#compdef zcore
# zcore: completion for zsh
_zcore() {{
    local -a verbs
    verbs=(
{listed}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{chr(10).join(cases)}
    esac
}}
if [ "$funcstack[1]" = "_zcore" ]; then _zcore "$@"; else compdef _zcore zcore; fi
"""


def _zsh_option(names, text, choices, takes_value):
    said = text.replace("[", "(").replace("]", ")").replace(":", " -")
    values = f":value:({' '.join(choices)})" if choices else ":value:_files" if takes_value else ""
    return " ".join(_quoted(f"{name}[{said}]{values}") for name in names)


def _fish(verbs, summaries):
    lines = ["# zcore: completion for fish"]
    for name, summary in summaries.items():
        lines.append(f"complete -c zcore -n __fish_use_subcommand -a {name} -d {_quoted(summary)}")
    for name, words in verbs.items():
        called = f"complete -c zcore -n '__fish_seen_subcommand_from {name}'"
        for names, text, choices, takes_value in words:
            if not names[0].startswith("-"):
                lines.append(f"{called} -f -a '{' '.join(names)}'")
                continue
            spelled = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in names)
            values = f" -x -a '{' '.join(choices)}'" if choices else " -r" if takes_value else ""
            lines.append(f"{called} {spelled}{values} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _quoted(text):
    """Return text in single quotes, as all three shells read it."""
    return "'" + " ".join(text.split()).replace("'", "’") + "'"
