"""The application: every command of the registry, and how its options are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyclopts import App, Parameter

from dpselect import __version__
from dpselect.cli.verbs import VERBS
from dpselect.errors import InvalidParameter

_HELP = """Which one is largest, when is the line crossed: answered under differential privacy.

With your own table, start with dpselect describe: it looks for what is wrong before anything is spent.
With none, start with dpselect demo. Every ε shown is an upper bound.
dpselect help COMMAND explains one; dpselect completion bash (zsh, fish) prints a script for your shell."""

#: Parameters whose options are called otherwise.
_RENAMED = {"start": "from", "end": "to", "names": "categories", "figures": "figure", "noise": "sigma-threshold"}


def application(run: str = "") -> App:
    """The commands; the one to ``run`` explains itself at length, the others in a line."""
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
    for place, (name, verb) in enumerate(VERBS.items()):
        app.command(f"dpselect.cli.{name}:{name}", name=name, sort_key=place, help=None if name == run else verb.line)
    return app


#: Shells that can complete commands and options.
SHELLS = ("bash", "zsh", "fish")


def completion(shells: Sequence[str]) -> str:
    """The script that teaches a shell these commands and options."""
    if len(shells) != 1 or shells[0] not in SHELLS:
        raise InvalidParameter(
            f"completion must be asked for one shell: {', '.join(SHELLS)}; e.g. dpselect completion bash"
        )
    return str(application().generate_completion(prog_name="dpselect", shell=shells[0]))  # type: ignore[arg-type]


def options_of(arguments: Sequence[str]) -> set[str]:
    """The options of the command that these arguments begin with, such as ``peak`` or ``ledger show``."""
    command = application()
    for word in arguments:
        if word.startswith("-") or word not in command:
            break
        command = command[word]
    if command.default_command is None:
        return set()
    return {name for one in command.assemble_argument_collection() for name in one.names}


def option_words(arguments: Sequence[str]) -> Callable[[str], str]:
    """What a parameter of the library is called by someone who typed these arguments.

    >>> word = option_words(["peak", "readings.csv"])
    >>> word("start"), word("per_user"), word("candidates")
    ('--from', '--per-user', 'candidates')
    """
    known = options_of(arguments)

    def word(parameter: str) -> str:
        option = f"--{_RENAMED.get(parameter, parameter).replace('_', '-')}"
        return option if option in known else parameter

    return word
