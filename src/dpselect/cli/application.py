"""The commands, one module each, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyclopts import App, Parameter

from dpselect import __version__
from dpselect.errors import InvalidParameter

#: Each command with its line of help: its name is its module's and its function's. A module is loaded when it is run.
COMMANDS = {
    "demo": "Simulate a city of meters over a year, ask for its peak and its cold days, write a report.",
    "describe": "Look at a table before anything is spent: what can be read, what looks wrong, and which option fixes "
    "it.",
    "peak": "Which day (hour, week, month, category) is largest?",
    "watch": "On which days (hours, …) is the line crossed? Asked in order, within a budget.",
    "epsilon": "What a release costs, as an upper bound on ε.",
    "calibrate": "The least noise with which a release costs at most ε.",
    "plan": "Which mechanism, how much noise, what accuracy: every way tuned and ranked, on public knowledge only.",
    "ledger": "The ledger that keeps a data set's budget: make it, look at it, check it.",
    "paper": "Recompute the paper's figures and judge its claims, on one page.",
}

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
    for place, (name, line) in enumerate(COMMANDS.items()):
        app.command(f"dpselect.cli.{name}:{name}", name=name, sort_key=place, help=None if name == run else line)
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
    """The options of the command that these arguments begin with."""
    if not arguments or arguments[0] not in COMMANDS:
        return set()
    return {name for one in application()[arguments[0]].assemble_argument_collection() for name in one.names}


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
