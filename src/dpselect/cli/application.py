"""The commands, one module each, and nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from cyclopts import App, Parameter

from dpselect import __version__
from dpselect.errors import InvalidParameter

#: One line per command: its name is its module's name and its function's name.
COMMANDS = ("demo", "describe", "peak", "watch", "epsilon", "calibrate", "plan", "ledger", "paper")

_HELP = """Which one is largest, when is the line crossed: answered under differential privacy.

Start with: dpselect demo. Every ε shown is an upper bound.
dpselect help COMMAND explains one; dpselect completion bash (zsh, fish) prints a script for your shell."""

#: Parameters whose options are called otherwise.
_RENAMED = {"start": "from", "end": "to", "names": "categories", "figures": "figure", "noise": "sigma-threshold"}

app = App(
    name="dpselect",
    help=_HELP,
    help_format="plaintext",
    version=f"dpselect {__version__}",
    # An option given twice: the last one counts, as in most programs.
    default_parameter=Parameter(negative=(), show_default=False, allow_repeating=True),
    exit_on_error=False,
    print_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
for _place, _name in enumerate(COMMANDS):
    app.command(getattr(importlib.import_module(f"dpselect.cli.{_name}"), _name), name=_name, sort_key=_place)


#: Shells that can complete commands and options.
SHELLS = ("bash", "zsh", "fish")


def completion(shells: Sequence[str]) -> str:
    """The script that teaches a shell these commands and options."""
    if len(shells) != 1 or shells[0] not in SHELLS:
        raise InvalidParameter(
            f"completion must be asked for one shell: {', '.join(SHELLS)}; e.g. dpselect completion bash"
        )
    return str(app.generate_completion(prog_name="dpselect", shell=shells[0]))  # type: ignore[arg-type]


def option_words(arguments: Sequence[str]) -> Callable[[str], str]:
    """What a parameter of the library is called by someone who typed these arguments.

    >>> word = option_words(["peak", "readings.csv"])
    >>> word("start"), word("per_user"), word("candidates")
    ('--from', '--per-user', 'candidates')
    """
    command = app[arguments[0]] if arguments and arguments[0] in COMMANDS else None
    known = (
        {name for one in command.assemble_argument_collection() for name in one.names} if command is not None else set()
    )

    def word(parameter: str) -> str:
        option = f"--{_RENAMED.get(parameter, parameter).replace('_', '-')}"
        return option if option in known else parameter

    return word
