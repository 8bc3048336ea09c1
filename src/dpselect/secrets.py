"""Nothing that looks like a credential is printed, logged or written down.

Somebody mistypes an address that has a password in it; the message that says so must not repeat the password. A
pre-signed address holds its signature in the query. Every place that a message names goes through here.
"""

from __future__ import annotations

import re

#: Stands where a secret stood.
HIDDEN = "***"

# user:password@ with or without the beginning of an address: everything between the colon and the last @.
_USER = re.compile(r"(?P<before>(?:[\w.+-]+:/+)?)(?P<user>[^\s/:@]*):(?P<password>\S*)@")
# A token or key given instead of a name: https://TOKEN@host.
_TOKEN = re.compile(r"(?P<before>[\w.+-]+:/+|//)(?P<token>[^\s/:@?#]+)@")
# Everything in a query or fragment that is given a value.
_QUERY = re.compile(r"(?P<sign>[?&;#])(?P<name>[^=&;#\s]*)=(?P<value>[^&;#\s]*)")
# key=value pairs as in a connection string, whatever stands around them.
_PAIR = re.compile(
    r"(?P<name>(?i:\b\w*(?:passw(?:or)?d|pwd|secret|token|api_?key|access_?key|account_?key|signature|credentials?|sig)\w*))"
    r"(?P<sign>\s*[=:]\s*)(?P<value>'[^']*'|\"[^\"]*\"|[^\s;&,]+)"
)


def without_secrets(text: str) -> str:
    """The text with every password, token and query value replaced.

    >>> without_secrets("postgres:/curator:hunter2@db.example/meters")
    'postgres:/curator:***@db.example/meters'
    >>> without_secrets("https://store.example/readings.csv?sv=2024&sig=abc%2F")
    'https://store.example/readings.csv?sv=***&sig=***'
    >>> without_secrets("readings/2013-*.csv")
    'readings/2013-*.csv'
    """
    text = _USER.sub(rf"\g<before>\g<user>:{HIDDEN}@", text)
    text = _TOKEN.sub(lambda found: found[0] if _is_hidden(found[0]) else f"{found['before']}{HIDDEN}@", text)
    text = _QUERY.sub(rf"\g<sign>\g<name>={HIDDEN}", text)
    return _PAIR.sub(rf"\g<name>\g<sign>{HIDDEN}", text)


def _is_hidden(found: str) -> bool:
    return HIDDEN in found


_ADDRESS = re.compile(r"\s*(?P<scheme>[A-Za-z][\w+.-]+):/")
_FILE_NAME = re.compile(r"/(?P<name>[\w .*+-]+\.(?:csv|csv\.gz|parquet|pq))(?:[?#]|$)", re.IGNORECASE)


def shown(place: object) -> str:
    """How a message names a place a person gave: quoted, without secrets, cut where it is long.

    Of an address, or of what may have been meant as one, only the scheme and the file's name are repeated.

    >>> shown("postgres:/curator:hunter 2@db.example/meters"), shown("https://me:pw@host/a/readings.csv?sig=x")
    ("'postgres://...'", "'https://.../readings.csv'")
    >>> shown("curator:hunter2@host/db"), shown("readings/2013-*.csv")
    ("'***@host/db'", "'readings/2013-*.csv'")
    """
    text = str(place)
    if address := _ADDRESS.match(text):
        name = _FILE_NAME.search(text)
        text = f"{address['scheme']}://..." + (f"/{name['name']}" if name else "")
    else:
        head, at, tail = text.rpartition("@")
        text = without_secrets(f"{HIDDEN}@{tail}" if at and ":" in head else text)
    return repr(text if len(text) <= 80 else text[:80] + "...")
