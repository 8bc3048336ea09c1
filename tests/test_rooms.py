"""The map of rooms in DESIGN holds: data flows one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "dpselect"

ABOVE = {
    "numerics": set(),
    "privacy": {"numerics"},
    "noise": set(),
    "mechanisms": {"privacy", "noise", "numerics"},
    "composition": {"privacy", "mechanisms", "noise", "numerics"},
    "tables": {"privacy"},
    "planning": {"mechanisms", "composition", "privacy", "numerics", "noise"},
    "report": {"mechanisms", "composition", "privacy", "numerics", "noise", "planning"},
}
EVERYWHERE = {"errors", "checks", "files"}


def rooms_imported_by(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "dpselect":
                names = [f"dpselect.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("dpselect.")}
    return found


@pytest.mark.parametrize("room", ABOVE)
def test_room_imports_only_what_the_map_allows(room):
    for path in (PACKAGE / room).rglob("*.py"):
        strangers = rooms_imported_by(path) - ABOVE[room] - EVERYWHERE - {room}
        assert not strangers, f"{path.relative_to(PACKAGE)} imports {strangers}"


def test_the_map_names_every_room():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ABOVE) | {"dataset", "paper", "cli", "demo"}


def test_import_is_light():
    """``import dpselect`` loads no heavy library; those come with the first name used."""
    code = "import sys, dpselect; print([m for m in ('numpy', 'scipy', 'flint', 'ibis') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_load():
    import dpselect

    for name in dpselect.__all__:
        assert getattr(dpselect, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dpselect.nonsense
