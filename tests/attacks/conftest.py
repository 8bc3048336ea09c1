"""What the attacks on ledgers share: a city small enough to ask in a second, real servers, and a network that fails."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from tests.cli.conftest import dpselect, readings
from tests.ledger.conftest import fresh_schema, place, postgres_server

__all__ = ["dpselect", "fresh_schema", "place", "postgres_server", "readings"]

#: Seconds that a ledger waits in these tests.
PATIENCE = 1.0
#: No step may take longer than its patience, the 2 s that a connection is given at least, and a slow machine.
AT_MOST = PATIENCE + 2.0 + 3.0


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSELECT_LEDGER_PATIENCE", str(PATIENCE))


class Proxy:
    """Between a client and a server: it forwards, falls silent, or refuses."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._awake = threading.Event()
        self._awake.set()
        self._sockets: list[socket.socket] = []
        #: How many connections came in.
        self.count = 0
        self._listen(0)

    def _listen(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.count += 1
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                self._awake.wait()
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def freeze(self) -> None:
        """Take what comes and forward nothing, as a network does that has gone silent."""
        self._awake.clear()

    def thaw(self) -> None:
        self._awake.set()

    def refuse(self) -> None:
        """End all connections and take no more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end()

    def accept_again(self) -> None:
        for _ in range(100):
            with suppress(OSError):
                self._listen(self.port)
                return
            time.sleep(0.05)

    def close(self) -> None:
        self.thaw()
        self.refuse()

    def _end(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()


@pytest.fixture
def server_url(fresh_schema: Callable[[], str]) -> str:
    """An empty schema of a real PostgreSQL server."""
    return fresh_schema()


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    made = Proxy(make_url(server_url).port or 5432)
    yield made
    made.close()


@pytest.fixture
def through_proxy(proxy: Proxy, server_url: str) -> str:
    """The same schema behind the proxy."""
    return make_url(server_url).set(port=proxy.port).render_as_string(hide_password=False)


#: The public facts about the readings, without their dates.
FACTS = ("--user", "meter", "--time", "at", "--value", "kwh", "--cap", 50, "--population", 20)
JANUARY = ("--from", "2013-01-01", "--to", "2013-01-31")


@pytest.fixture
def describe(dpselect: Callable[..., object], readings: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a data-set file with a ledger of its own."""

    def write(name: str = "homes", *, total: object = 100, more: tuple[object, ...] = ()) -> Path:
        made = tmp_path / f"{name}.toml"
        ran = dpselect("describe", readings, *FACTS, *JANUARY, "--write", made, "--total", total, *more)
        assert ran.code == 0, ran.err  # type: ignore[attr-defined]
        return made

    return write
