"""The commands, one module each, and nothing else."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Annotated

import typer

from dpselect import __version__

#: One line per command: its name is its module's name and its function's name.
COMMANDS = ("demo", "peak", "watch", "epsilon", "calibrate", "plan", "paper")

app = typer.Typer(
    name="dpselect",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    # A traceback can quote private values; failures.py decides what is shown.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpselect {__version__}")
        raise typer.Exit


@app.callback()
def dpselect(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Which one is largest, when is the line crossed: answered under differential privacy, with Gaussian noise.

    Start with [bold]dpselect demo[/bold]. Every ε shown is an upper bound.
    """


for _name in COMMANDS:
    # A command whose module is not there yet is not offered.
    if find_spec(f"dpselect.cli.{_name}") is not None:
        app.command(_name)(getattr(importlib.import_module(f"dpselect.cli.{_name}"), _name))
