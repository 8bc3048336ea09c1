"""Where random bits come from.

:data:`SYSTEM_ENTROPY` is the operating system's randomness, stretched by AES-256 in counter mode (about
twenty times the speed of ``os.urandom``). The key and the counter come from ``os.urandom`` and are
replaced every 16 MiB; a forked child, also one forked by C code, starts with a new key and an empty pool, so it can
never repeat what its parent drew; bytes are marked as used *before* they are handed out, so an interruption can lose
bytes but not serve them twice; and a signal handler that draws in the middle of a draw gets bytes of its own.

:class:`SeededEntropy` repeats itself on purpose. Whoever knows the seed can undo the noise, so what is drawn
from it is ``reproducible``, never ``private``.

What is not promised: a snapshot of a whole running machine, started twice, repeats up to 16 MiB of stream.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray

from dpselect.checks import refuse
from dpselect.ownership import owned_here, process

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


class _Keystream:
    """A block cipher in counter mode and the pool it fills: the state of one stream in one process."""

    __slots__ = ("_cipher", "_key", "_left", "drawing", "lock", "pool", "process", "used")

    def __init__(self, key: Callable[[], tuple[bytes, bytes]]) -> None:
        self._key = key
        self._cipher: Any = None
        self._left = 0
        self.process = process()
        # Reentrant: a signal handler may draw while this very thread is drawing.
        self.lock = threading.RLock()
        self.pool = bytearray()
        self.used = 0
        #: Whether a draw from the pool is under way; whoever draws in the middle of it must leave the pool alone.
        self.drawing = False

    def generate(self, buffer: memoryview) -> None:
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

    def fresh(self, count: int) -> bytes:
        """Bytes past the pool."""
        buffer = bytearray(count)
        self.generate(memoryview(buffer))
        return bytes(buffer)

    def take(self, count: int) -> int:
        """Mark ``count`` bytes of the pool as used and return where they begin."""
        if self.used + count > len(self.pool):
            fresh = bytearray(_POOL_BYTES)
            self.generate(memoryview(fresh))
            # This order: an interruption between the two lines leaves a pool that counts as used up.
            self.used, self.pool = len(fresh), fresh
            self.used = 0
        start = self.used
        self.used = start + count
        return start


class _Stream(ABC):
    """Bytes of a block cipher in counter mode; what subclasses choose is the key."""

    private = False

    def __init__(self) -> None:
        self._stream = _Keystream(self._key)

    @abstractmethod
    def _key(self) -> tuple[bytes, bytes]:
        """A key and a first counter, never the same twice but for a seed."""

    @abstractmethod
    def _moved(self) -> _Keystream:
        """The stream to draw from in a process that was forked off."""

    def cell(self) -> int:
        """One 16-bit word, the quick way for one question at a time.

        >>> 0 <= SYSTEM_ENTROPY.cell() < 65536
        True
        """
        stream = self._stream
        if stream.process != process():
            stream = self._moved()
        with stream.lock:
            if stream.drawing:
                return int.from_bytes(stream.fresh(2), "little")
            try:
                stream.drawing = True
                start, pool = stream.used, stream.pool
                if start + 2 <= len(pool):
                    stream.used = start + 2
                else:
                    start, pool = stream.take(2), stream.pool
                word = pool[start] | pool[start + 1] << 8
                pool[start] = pool[start + 1] = 0
            finally:
                stream.drawing = False
        return word

    def random_bytes(self, count: int, /) -> bytes:
        """``count`` random bytes."""
        stream = self._stream
        if stream.process != process():
            stream = self._moved()
        with stream.lock:
            if count > _POOL_BYTES // 2 or stream.drawing:
                return stream.fresh(count)
            try:
                stream.drawing = True
                start = stream.take(count)
                taken = bytes(stream.pool[start : start + count])
                stream.pool[start : start + count] = bytes(count)
            finally:
                stream.drawing = False
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
        stream = self._stream
        if stream.process != process():
            stream = self._moved()
        with stream.lock:
            stream.generate(words.data.cast("B"))
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

    def __init__(self) -> None:
        super().__init__()
        owned_here(self)

    @property
    def _process(self) -> int:
        return self._stream.process

    @_process.setter
    def _process(self, number: int) -> None:
        self._stream.process = number

    def _key(self) -> tuple[bytes, bytes]:
        return os.urandom(32), os.urandom(16)

    def _moved(self) -> _Keystream:
        # A new key, a new pool and a new lock in one step: two threads that both come here share none of them.
        self._stream = stream = _Keystream(self._key)
        return stream

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
        self._keys = itertools.count()
        super().__init__()

    def _key(self) -> tuple[bytes, bytes]:
        digest = hashlib.sha512(f"dpselect seeded entropy {self.seed} {next(self._keys)}".encode()).digest()
        return digest[:32], digest[32:48]

    def _moved(self) -> _Keystream:
        # The stream goes on as its seed says, with a lock that no thread of the parent can have held.
        stream = self._stream
        stream.lock, stream.drawing, stream.process = threading.RLock(), False, process()
        return stream

    def __reduce__(self) -> tuple[type[SeededEntropy], tuple[int]]:
        return SeededEntropy, (self.seed,)


#: The operating system's randomness; the default everywhere.
SYSTEM_ENTROPY = SystemEntropy()
