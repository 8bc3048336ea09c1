"""Where random bits come from.

:data:`SYSTEM_ENTROPY` is the operating system's randomness, stretched by AES-256 in counter mode (about
twenty times the speed of ``os.urandom``). The key and the counter come from ``os.urandom`` and are
replaced every 16 MiB; a forked child starts with a new key and an empty pool, so it can never repeat what
its parent drew; bytes are marked as used *before* they are handed out, so an interruption can lose bytes
but not serve them twice.

:class:`SeededEntropy` repeats itself on purpose. Whoever knows the seed can undo the noise, so what is drawn
from it is ``reproducible``, never ``private``.

What is not promised: a snapshot of a whole running machine, started twice, repeats up to 16 MiB of stream.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray

from dpselect.checks import refuse

_POOL_BYTES = 8192
_CHUNK = bytes(1 << 16)
_ROTATE_AFTER = 1 << 24


@runtime_checkable
class Entropy(Protocol):
    """A source of independent fair bits; each is handed out once."""

    #: Whether an outsider has no way to repeat the bits.
    private: bool

    def cell(self) -> int:
        """One 16-bit word, the quick way for one question at a time."""
        ...

    def random_bytes(self, count: int, /) -> bytes:
        """``count`` random bytes."""
        ...

    def words(self, count: int, /, *, dtype: DTypeLike) -> NDArray[Any]:
        """``count`` random unsigned integers, uniform over the whole range of ``dtype``."""
        ...

    def bits(self, count: int, /) -> int:
        """A whole number uniform on 0, …, 2^count − 1."""
        ...

    def below(self, bound: int, /) -> int:
        """A whole number uniform on 0, …, bound − 1, exactly."""
        ...


class _Stream(ABC):
    """Bytes of a block cipher in counter mode; what subclasses choose is the key."""

    private = False

    def __init__(self) -> None:
        self._start_over()
        _streams.add(self)

    def _start_over(self) -> None:
        # A forked child may have copied a lock that another thread of its parent held: it needs its own.
        self._lock = threading.RLock()
        self._cipher: Any = None
        self._left = 0
        self._pool = bytearray()
        self._used = 0

    @abstractmethod
    def _key(self) -> tuple[bytes, bytes]:
        """A key and a first counter, never the same twice but for a seed."""

    def _generate(self, buffer: memoryview) -> None:
        """Write fresh stream over ``buffer``."""
        start, size = 0, len(buffer)
        while start < size:
            if self._left <= 0:
                key, counter = self._key()
                self._cipher = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
                self._left = _ROTATE_AFTER
            length = min(len(_CHUNK), size - start)
            self._left -= length
            zeros = _CHUNK if length == len(_CHUNK) else _CHUNK[:length]
            self._cipher.update_into(zeros, buffer[start : start + length])
            start += length

    def _take(self, count: int) -> int:
        """Mark ``count`` bytes of the pool as used and return where they begin."""
        if self._used + count > len(self._pool):
            fresh = bytearray(_POOL_BYTES)
            self._generate(memoryview(fresh))
            # This order: an interruption between the two lines leaves a pool that counts as used up.
            self._used, self._pool = len(fresh), fresh
            self._used = 0
        start = self._used
        self._used = start + count
        return start

    def cell(self) -> int:
        """One 16-bit word, the quick way for one question at a time.

        >>> 0 <= SYSTEM_ENTROPY.cell() < 65536
        True
        """
        with self._lock:
            start = self._take(2)
            pool = self._pool
            word = pool[start] | pool[start + 1] << 8
            pool[start] = pool[start + 1] = 0
        return word

    def random_bytes(self, count: int, /) -> bytes:
        """``count`` random bytes."""
        if count > _POOL_BYTES // 2:
            buffer = bytearray(count)
            with self._lock:
                self._generate(memoryview(buffer))
            return bytes(buffer)
        with self._lock:
            start = self._take(count)
            taken = bytes(self._pool[start : start + count])
            self._pool[start : start + count] = bytes(count)
        return taken

    def words(self, count: int, /, *, dtype: DTypeLike) -> NDArray[Any]:
        """``count`` random unsigned integers, uniform over the whole range of ``dtype``."""
        kind = np.dtype(dtype)
        if kind.kind != "u":
            raise refuse("dtype", kind.name, "an unsigned integer type")
        size = count * kind.itemsize
        if size <= _POOL_BYTES // 2:
            return np.frombuffer(self.random_bytes(size), dtype=kind)
        words = np.empty(count, dtype=kind)
        with self._lock:
            self._generate(words.data.cast("B"))
        return words

    def bits(self, count: int, /) -> int:
        """A whole number uniform on 0, …, 2^count − 1."""
        size = (count + 7) // 8
        return int.from_bytes(self.random_bytes(size), "little") >> (8 * size - count)

    def below(self, bound: int, /) -> int:
        """A whole number uniform on 0, …, bound − 1, exactly (by rejection).

        >>> SYSTEM_ENTROPY.below(1)
        0
        """
        if bound < 1:
            raise refuse("bound", bound, "a whole number, 1 or more")
        width = (bound - 1).bit_length()
        while True:
            number = self.bits(width)
            if number < bound:
                return number


class SystemEntropy(_Stream):
    """The operating system's randomness, stretched by AES-256; one for the whole process is enough.

    >>> SYSTEM_ENTROPY.private, len(SYSTEM_ENTROPY.random_bytes(7))
    (True, 7)
    """

    private = True

    def _key(self) -> tuple[bytes, bytes]:
        return os.urandom(32), os.urandom(16)

    def __reduce__(self) -> str:
        # A copy would hand out the same pool twice: copying and pickling give back the one source.
        return "SYSTEM_ENTROPY"


class SeededEntropy(_Stream):
    """Bits that repeat for the same seed: for tests and for figures, never for a private release.

    >>> SeededEntropy(7).random_bytes(4) == SeededEntropy(7).random_bytes(4)
    True
    >>> SeededEntropy(7).private
    False
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise refuse("seed", seed, "a whole number")
        self.seed = int(seed)
        self._keys = 0
        super().__init__()

    def _key(self) -> tuple[bytes, bytes]:
        digest = hashlib.sha512(f"dpselect seeded entropy {self.seed} {self._keys}".encode()).digest()
        self._keys += 1
        return digest[:32], digest[32:48]

    def __reduce__(self) -> tuple[type[SeededEntropy], tuple[int]]:
        return SeededEntropy, (self.seed,)


_streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
_forks = 0


def forks() -> int:
    """How many forks separate this process from the one that first imported the module.

    An object that holds noise remembers this number and refuses to go on in a forked child, where the same
    noise would otherwise be used twice.
    """
    return _forks


def _after_fork() -> None:
    global _forks
    _forks += 1
    for stream in list(_streams):
        if isinstance(stream, SystemEntropy):
            stream._start_over()
        else:
            stream._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

#: The operating system's randomness; the default everywhere.
SYSTEM_ENTROPY = SystemEntropy()
