"""The map of rooms holds: data flows one way. The contracts stand in .importlinter, and nowhere else."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = ROOT / ".importlinter"


def broken(contracts: Path) -> bool:
    linter = pytest.importorskip("importlinter.cli", reason="import-linter is not installed; run make setup")
    return linter.lint_imports(config_filename=str(contracts), no_cache=True) != linter.EXIT_STATUS_SUCCESS


def test_rooms_import_only_what_the_contracts_allow(capsys):
    assert not broken(CONTRACTS), capsys.readouterr().out


def test_a_map_with_two_rooms_exchanged_would_be_broken(tmp_path):
    text = CONTRACTS.read_text()
    exchanged = text.replace("    planning\n    composition\n", "    composition\n    planning\n")
    assert exchanged != text
    (tmp_path / "contracts").write_text(exchanged)
    assert broken(tmp_path / "contracts")


def test_a_package_that_imports_a_paper_would_break_the_contract(tmp_path):
    text = CONTRACTS.read_text()
    allowed = "ignore_imports =\n    dpselect.cli.paper -> lebensold2024\n"
    assert text.count(allowed) == 1
    (tmp_path / "contracts").write_text(text.replace(allowed, ""))
    assert broken(tmp_path / "contracts")


def test_the_page_for_contributors_quotes_the_map():
    layers = CONTRACTS.read_text().split("layers =\n")[1].split("exhaustive")[0]
    assert layers in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_import_is_light():
    """``import dpselect`` loads no heavy library; those come with the first name used."""
    heavy = ("numpy", "scipy", "flint", "ibis", "sqlalchemy")
    code = f"import sys, dpselect; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_type_checkers_are_told_of_the_public_names_and_of_no_others():
    import dpselect

    tree = ast.parse(Path(dpselect.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {name.asname: f"{line.module}.{name.name}" for line in block.body for name in line.names}
    assert told == {name: f"{home}.{name}" for name, home in dpselect._HOMES.items()}


def test_every_file_that_a_page_names_is_there():
    """`rule.py`, `numerics/rule.py`, `tests/…`; of the core, modules by their dotted names, too."""
    parts = [ROOT / part for part in ("src", "papers", "tests", "benchmarks")]
    files = [path.as_posix() for part in parts for path in part.rglob("*.py")]
    missing = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"`([\w/]+\.py)\b", text))
        dotted = re.findall(r"`(?:dpselect\.)?(numerics|privacy|noise|mechanisms|composition)\.([a-z_]+)", text)
        named |= {f"{room}/{module}.py" for room, module in dotted}
        missing += [(page.name, name) for name in named if not any(file.endswith(f"/{name}") for file in files)]
    assert not missing


def test_public_names_load():
    import dpselect

    for name in dpselect.__all__:
        assert getattr(dpselect, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dpselect.nonsense
