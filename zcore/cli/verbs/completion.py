"""Print the completion of a shell for zcore.

The shell asks zcore for the verbs, options and choices that may come next. Any other word is completed as a file's
name.

Examples:
  zcore completion bash >> ~/.bashrc
  zcore completion zsh > ~/.zfunc/_zcore
  zcore completion fish > ~/.config/fish/completions/zcore.fish
"""
from __future__ import annotations

import argparse

# Each script calls `zcore completion words` with the words before the one that is typed.
SCRIPTS = {
    "bash": """# zcore: completion for bash
_zcore() {
    local before=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
    COMPREPLY=($(compgen -W "$(zcore completion words "${before[@]}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _zcore zcore
""",
    "zsh": """#compdef zcore
# zcore: completion for zsh
_zcore() {
    compadd -- ${(f)"$(zcore completion words "${(@)words[2,CURRENT-1]}" 2>/dev/null)"}
    _files
}
if [ "$funcstack[1]" = "_zcore" ]; then _zcore "$@"; else compdef _zcore zcore; fi
""",
    "fish": """# zcore: completion for fish
complete -c zcore -a '(zcore completion words (commandline -opc)[2..] 2>/dev/null)'
""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("shell", choices=[*SCRIPTS, "words"], metavar="SHELL", help=f"one of {', '.join(SCRIPTS)}")
    parser.add_argument("before", nargs=argparse.REMAINDER, help=argparse.SUPPRESS).required = False


def run(arguments: argparse.Namespace) -> int:
    """Print the script, or the words that may come next."""
    print("\n".join(_words(arguments.before)) if arguments.shell == "words" else SCRIPTS[arguments.shell])
    return 0


def _words(before):
    """Return the words that may come behind others."""
    from zcore.cli.parser import VERBS, parser_of, verb_of

    verb = verb_of(before)
    if verb not in VERBS:
        return [*VERBS, "--help", "--version"]
    (verbs,) = [action.choices for action in parser_of(verb)._actions if action.dest == "verb"]
    actions = verbs[verb]._actions
    values = [choice for action in actions if before[-1] in action.option_strings for choice in action.choices or ()]
    return map(str, values or [word for action in actions for word in action.option_strings or action.choices or ()])
