"""What a person sees when something goes wrong: one line and an exit code, never a traceback.

Standard output may be closed, full, or have a reader that leaves. An answer that was drawn has been paid for, whether
or not anybody saw it: what can be known beforehand is refused beforehand, and what goes wrong later is told for what it
is. A traceback, or the text of an error nobody foresaw, can quote private values, so neither is shown unless the
environment variable ``DPSELECT_DEBUG`` asks for it.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dpselect.cli import screen, spent
from dpselect.cli.verbs import VERBS, Verb, spends
from dpselect.errors import BudgetExhausted, DPSelectError, DPSelectWarning
from dpselect.secrets import without_secrets

#: A narrower line takes no name in one piece, and one of no width takes nothing: an answer would be paid for and lost.
_LEAST_WIDTH = 40

DONE, FAULT, BAD_INPUT, BUDGET_EXHAUSTED, NOT_WRITTEN, INTERRUPTED, NO_READER = 0, 1, 2, 3, 4, 130, 141


class NotWritten(DPSelectError):
    """Something could not be written after an answer was drawn."""


def one_line(text: str) -> str:
    """The text on one line, without control characters that could rewrite the terminal.

    >>> one_line("two" + chr(10) + "  lines" + chr(27) + "[2J")
    'two lines[2J'
    """
    return " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())


def say(text: str, *, as_json: bool = False, kind: str = "error") -> None:
    """One sentence on standard error, as JSON when the command was asked for JSON."""
    line = one_line(without_secrets(text))
    told = json.dumps({kind: line}, ensure_ascii=False) if as_json else screen.wrapped(f"{kind}: {line}")
    with suppress(OSError):  # the exit code still tells
        print(told, file=sys.stderr, flush=True)


def guarded(arguments: Sequence[str]) -> int:
    """Run the application; whatever happens becomes one line and an exit code."""
    as_json = "--json" in arguments
    spent.forget()
    arguments = _spelled(arguments)

    def asks() -> bool:
        """Whether something may be spent by now: a command of the registry, or whatever has begun to charge."""
        return spends(arguments) or spent.has_begun()

    if not _prepare():
        say("standard output is closed: the answer would be lost, so nothing was asked", as_json=as_json)
        return BAD_INPUT

    def warn(message: Warning | str, category: type[Warning], *_: object) -> None:
        # Warnings of libraries underneath are for developers.
        if issubclass(category, DPSelectWarning):
            say(str(message), as_json=as_json, kind="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = warn  # type: ignore[assignment]
        try:
            from dpselect.cli.application import application, completion

            if list(arguments[:1]) == ["completion"]:
                print(completion(arguments[1:]))
                return DONE
            code = application(arguments[0] if arguments else "")(list(arguments))
            sys.stdout.flush()
            unfinished = not arguments or (len(arguments) == 1 and arguments[0] in VERBS and VERBS[arguments[0]].group)
            return BAD_INPUT if unfinished else code if isinstance(code, int) else DONE
        except NotWritten as failure:
            say(str(failure), as_json=as_json)
            return NOT_WRITTEN
        except DPSelectError as failure:
            from dpselect.cli.application import option_words

            told, ended = failure.told(option_words(arguments)), isinstance(failure, BudgetExhausted)
            say(told + (spent.after_refusal(failure) if asks() and not ended else ""), as_json=as_json)
            return BUDGET_EXHAUSTED if ended else BAD_INPUT
        except (KeyboardInterrupt, EOFError) as failure:
            said = str(failure) or "interrupted"
            say(said + (spent.after_interruption(failure) if asks() else ""), as_json=as_json)
            return INTERRUPTED
        except (Exception, SystemExit) as failure:
            if _reader_left(failure):
                _give_up()
                return NO_READER
            if _refused_text(failure):
                _give_up()
                say(_lost(failure, arguments if asks() else ()), as_json=as_json)
                return NOT_WRITTEN
            if isinstance(failure, SystemExit):
                return failure.code if isinstance(failure.code, int) else FAULT
            if isinstance(failure.__context__, KeyboardInterrupt):  # an import turned it into its own error
                say("interrupted" + (spent.after_interruption(failure) if asks() else ""), as_json=as_json)
                return INTERRUPTED
            return _unforeseen(failure, as_json=as_json, cost=spent.after_interruption(failure) if asks() else "")


def _spelled(arguments: Sequence[str]) -> Sequence[str]:
    """``help`` and ``help peak`` as the options they stand for."""
    if list(arguments[:1]) != ["help"]:
        return arguments
    return [*arguments[1:2], "--help"]


def _misused(failure: Exception) -> str | None:
    """What to say of arguments that could not be read; None where something else went wrong."""
    import cyclopts

    if not isinstance(failure, cyclopts.CycloptsError):
        return None
    argument = failure.argument
    name = repr(argument.name) if argument is not None else ""
    if isinstance(failure, cyclopts.MissingArgumentError) and name == "'DATA'":
        return "no table was named; give a file, or a data-set file such as homes.toml"
    if isinstance(failure, cyclopts.MissingArgumentError):
        return f"Missing option {name}"
    # What follows a table that may be several is read as one more of them.
    taken = [token.value for token in getattr(argument, "tokens", ())] if name == "'DATA'" else []
    stray = next((text for text in taken if text.startswith("-") and text != "-"), None)
    if isinstance(failure, cyclopts.UnknownOptionError):
        stray = failure.token.value if failure.token.keyword is None else failure.token.keyword
    if stray is not None:
        return _no_such_option(stray, list(failure.command_chain or ()))
    if isinstance(failure, cyclopts.UnknownCommandError):
        return str(failure).replace("Unknown command", "No such command").partition(" Available commands")[0]
    if isinstance(failure, (cyclopts.CoercionError, cyclopts.ValidationError)) and argument is not None:
        choices, token = argument.get_choices(), getattr(failure, "token", None)
        if choices and token is not None:
            return f"Invalid value for {name}: {token.value!r} is not one of {', '.join(choices)}"
        return f"Invalid value for {name}: {failure.msg or failure}"
    return str(failure)


def _no_such_option(typed: str, verbs: Sequence[str]) -> str:
    """An option that is none, and the one that is spelt nearly so."""
    import difflib

    from dpselect.cli.application import options_of

    word = typed.partition("=")[0]
    near = difflib.get_close_matches(word, sorted(options_of(verbs)), n=1, cutoff=0.7)
    return f"No such option: {word}" + (f". Did you mean {near[0]}?" if near else "")


def _unforeseen(failure: Exception, *, as_json: bool, cost: str) -> int:
    misused = _misused(failure)
    if misused is not None:
        verbs: list[str] = list(getattr(failure, "command_chain", None) or ())
        chain = " ".join(["dpselect", *verbs])
        verb = next(iter(verbs), "")
        for typed, meant in VERBS[verb].meant.items() if verb in VERBS else ():
            if "No such option" in misused and typed in misused:
                misused = f"{verb} has no {typed}; give {meant}, the most its answer may cost"
        line = one_line(misused).rstrip(".")
        if line.endswith("?"):
            cost = cost.replace("; nothing", " Nothing")
        say(f"{line}{cost} (see {chain} --help)", as_json=as_json)
        return BAD_INPUT
    if told := _missing_extra(failure):
        say(f"{told}{cost}", as_json=as_json)
        return BAD_INPUT
    if isinstance(failure, MemoryError):
        say(f"out of memory; close other programs or raise the limit{cost}", as_json=as_json)
        return BAD_INPUT
    if os.environ.get("DPSELECT_DEBUG"):
        traceback.print_exception(failure)
    else:
        say(
            f"a fault in dpselect ({type(failure).__name__}); its text may hold private data and is not shown: "
            f"set DPSELECT_DEBUG=1 to see it, on data you may see{cost}",
            as_json=as_json,
        )
    return FAULT


def _prepare() -> bool:
    """Makes both streams take any text, as UTF-8; whether there is a standard output at all."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) < _LEAST_WIDTH:
        os.environ["COLUMNS"] = str(_LEAST_WIDTH)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # In the C locale ε would end the program after the answer was paid for.
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdout is not None


def _reader_left(failure: BaseException) -> bool:
    """Whether this is about a pipe that nobody reads any more (``| head``), also when a library wrapped it."""
    return isinstance(failure, BrokenPipeError) or isinstance(failure.__context__, BrokenPipeError)


def _refused_text(failure: BaseException) -> bool:
    """Whether an open stream could not take what was written to it: files that are opened by name say their name."""
    return isinstance(failure, OSError) and failure.errno is not None and failure.filename is None


def _lost(failure: BaseException, asked: Sequence[str]) -> str:
    """What to say when the output could not take the text; ``asked`` are the arguments of a command that spends.

    >>> full = OSError(28, "No space left on device")
    >>> _lost(full, [])
    'the output could not be written (No space left on device)'
    >>> _lost(full, ["peak"]).partition("; ")[2]
    'the answer may have been drawn: count its cost as spent'
    """
    why = getattr(failure, "strerror", None) or type(failure).__name__
    return f"the output could not be written ({why})" + (f"; {lost(asked[0])}" if asked else "")


def lost(verb: str) -> str:
    """What to say where an answer of this command may have been drawn that nobody saw."""
    return VERBS.get(verb, Verb("")).lost


def _give_up() -> None:
    """Sends what is left to nowhere, so that the interpreter does not fail once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


#: Which extra of the package brings a library.
_EXTRAS = {
    "matplotlib": "plots",
    "ibis": "tables",
    "duckdb": "tables",
    "pyarrow": "tables",
    "polars": "polars",
    "pyspark": "spark",
    "python_calamine": "excel",
    "sqlalchemy": "ledger",
    "psycopg": "ledger",
    "pandas": "paper",
    "mpmath": "paper",
    "pooch": "paper",
    "rich": "cli",
    "cupy": "gpu",
}


def _missing_extra(failure: BaseException) -> str | None:
    """One line on what to install for a library that was not found, or ``None`` where it is not one of ours.

    >>> _missing_extra(ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.pyplot"))
    'this needs matplotlib, which is not installed; install dpselect[plots]'
    """
    if not isinstance(failure, ModuleNotFoundError) or not failure.name:
        return None
    library = failure.name.partition(".")[0]
    extra = _EXTRAS.get(library)
    return extra and f"this needs {library}, which is not installed; install dpselect[{extra}]"
