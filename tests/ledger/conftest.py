"""A ledger's place on each database: a file, or a fresh schema of a PostgreSQL server started for the tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpselect.ledger import Ledger, Total

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres_server(postgres: Any) -> str:
    """The URL of a real server."""
    return postgres.url("meters").replace("postgres://", "postgresql://")


@pytest.fixture(scope="session")
def fresh_schema(postgres_server: str) -> Callable[[], str]:
    """Makes a new schema on the server and gives the URL under which it is all there is."""
    import psycopg
    from sqlalchemy.engine import make_url

    def make() -> str:
        name = f"ledger_{secrets.token_hex(8)}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        url = make_url(postgres_server).update_query_dict({"options": f"-csearch_path={name}"})
        return url.render_as_string(hide_password=False)

    return make


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "homes.ledger")
    make: Callable[[], str] = request.getfixturevalue("fresh_schema")
    return make()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where a module says so, PostgreSQL is no other than SQLite to what it tries: the long run tries both."""
    for item in items:
        database = getattr(item, "callspec", None) and item.callspec.params.get("place")  # type: ignore[attr-defined]
        if database == "postgresql" and getattr(getattr(item, "module", None), "POSTGRESQL_IS_SLOW", False):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    with Ledger.create(place, dataset="homes", total=Total.pure(1.0), who="ann", patience=10.0) as made:
        yield made
