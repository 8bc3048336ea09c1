"""What every suite shares: how Hypothesis looks for examples, and real database servers.

Hypothesis tries the same examples every time, so that the suite says the same of the same code.
``DPSELECT_EXPLORE=1`` (set by ``make test-full``) lets it look for new ones.

The servers are started by the tests, in a temporary folder, and stopped after them. PostgreSQL comes from the system or
from the ``pgserver`` package (part of the ``dev`` extra), MariaDB from the system. Where neither is there, the tests
that need one are skipped and say so.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair.
TIMELESS: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **TIMELESS)
settings.register_profile("explore", **TIMELESS)
settings.load_profile("explore" if os.environ.get("DPSELECT_EXPLORE") else "steady")


@dataclass(frozen=True)
class Server:
    """A database server that listens on this machine alone."""

    scheme: str
    port: int
    password: str
    process: subprocess.Popen[bytes]

    def url(self, database: str, *, user: str = "curator", password: str | None = None) -> str:
        return f"{self.scheme}://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "meters") -> Any:
        """A connection of the server's owner."""
        if self.scheme == "postgres":
            import psycopg

            return psycopg.connect(self.url(database).replace("postgres://", "postgresql://"))
        import MySQLdb

        where = {"host": "127.0.0.1", "port": self.port, "database": database, "charset": "utf8mb4"}
        return MySQLdb.connect(user="curator", password=self.password, init_command="SET time_zone = '+00:00'", **where)

    def run(self, *statements: str, database: str = "meters") -> None:
        """Runs SQL as the server's owner."""
        with closing(self.connect(database)) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


def _free_port() -> int:
    """A port below those the system hands out by itself: nobody else is given it before the server starts."""
    for port in random.SystemRandom().sample(range(20_000, 30_000), 1000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    pytest.fail("no port is free")


def _plain_user() -> str | None:
    """Whom to run as: servers refuse the superuser."""
    return "nobody" if os.geteuid() == 0 else None


@contextmanager
def _home() -> Iterator[Path]:
    """A folder of the user the server runs as, with a name short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="dpselect-", ignore_cleanup_errors=True) as folder:
        if user := _plain_user():
            shutil.chown(folder, user)
        yield Path(folder)


def _wait(ready: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            pytest.fail(f"the server ended at once: {log.read_text()[-2000:]}")
        try:
            ready()
            return
        except Exception:  # drivers share no base class
            time.sleep(0.1)
    process.kill()
    process.wait()
    pytest.fail(f"the server did not answer within two minutes: {log.read_text()[-2000:]}")


def _postgres_programs(folder: Path) -> Path:
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if places:
        return places[0]
    found = find_spec("pgserver")  # not imported: it looks for a folder of the user's, and warns
    if found is None or found.origin is None:
        pytest.skip("no PostgreSQL: neither on the path, nor in /usr/lib/postgresql, nor the pgserver package")
    package = Path(found.origin).parent
    if _plain_user() is None:
        return package / "pginstall" / "bin"
    # The environment may lie where only the superuser can read. The libraries lie beside the package.
    for part in (package / "pginstall", package.with_name("pgserver.libs")):
        if part.is_dir():
            shutil.copytree(part, folder / "site" / part.relative_to(package.parent), symlinks=True)
    return folder / "site" / "pgserver" / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server with the database ``meters``."""
    pytest.importorskip("psycopg", reason="no driver for PostgreSQL: psycopg is not installed")
    with _home() as folder:
        yield from _run_postgres(folder)


def _run_postgres(folder: Path) -> Iterator[Server]:
    programs = _postgres_programs(folder)
    password, port, user = secrets.token_hex(8), _free_port(), _plain_user()
    (folder / "password").write_text(password)
    (folder / "password").chmod(0o644)
    made = [programs / "initdb", "-D", folder / "data", "-U", "curator", "--auth=scram-sha-256", "--no-sync"]
    made += [f"--pwfile={folder / 'password'}", "--encoding=UTF8", "--locale=C.UTF-8"]
    subprocess.run(made, check=True, user=user, capture_output=True, cwd=folder)
    where = [f"-p{port}", f"-k{folder}", "-clisten_addresses=127.0.0.1", "-cfsync=off", "-cmax_connections=50"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *where], user=user, stdout=log, stderr=log, cwd=folder
        )
    server = Server("postgres", port, password, process)
    _wait(lambda: server.connect("postgres").close(), process, folder / "log")
    with closing(server.connect("postgres")) as connection:
        connection.autocommit = True
        connection.execute("CREATE DATABASE meters")
    yield server
    process.send_signal(2)  # fast shutdown
    process.wait(120)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """A MariaDB server with the database ``meters``, whose collations ignore case, as MariaDB's own default does."""
    pytest.importorskip("MySQLdb", reason="no driver for MariaDB: install dpselect[mysql], built with libmariadb-dev")
    with _home() as folder:
        yield from _run_mariadb(folder)


def _run_mariadb(folder: Path) -> Iterator[Server]:
    daemon = shutil.which("mariadbd") or shutil.which("mysqld") or shutil.which("mariadbd", path="/usr/sbin")
    if daemon is None:
        pytest.skip("no MariaDB: mariadbd is neither on the path nor in /usr/sbin")
    password, port, user = secrets.token_hex(8), _free_port(), _plain_user()
    (folder / "first.sql").write_text(
        "CREATE DATABASE meters CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;\n"
        f"CREATE USER curator@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        f"CREATE USER curator@localhost IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO curator@'127.0.0.1' WITH GRANT OPTION;\n"
        "GRANT ALL ON *.* TO curator@localhost WITH GRANT OPTION;\n"
    )
    data = folder / "data"
    install = [shutil.which("mariadb-install-db") or "mysql_install_db", "--no-defaults", f"--datadir={data}"]
    install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, user=user, capture_output=True, cwd=folder)
    where = ["--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1"]
    where += [f"--socket={folder / 's'}", f"--pid-file={folder / 'pid'}", f"--init-file={folder / 'first.sql'}"]
    where += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", f"--tmpdir={folder}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([daemon, *where], user=user, stdout=log, stderr=log, cwd=folder)
    server = Server("mysql", port, password, process)
    _wait(lambda: server.connect().close(), process, folder / "log")
    yield server
    process.terminate()
    process.wait(120)
