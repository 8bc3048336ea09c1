from __future__ import annotations

import copy
import functools
import itertools
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from tests.interruptions import interrupted

from dpselect.errors import InvalidParameter
from dpselect.noise import entropy as entropy_module
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy, SeededEntropy, SystemEntropy

IN_A_FORKED_CHILD = """
import os
from dpselect.noise.entropy import SYSTEM_ENTROPY
SYSTEM_ENTROPY.random_bytes(100)      # the pool the child copies is half used
def everything():
    small = b"".join(SYSTEM_ENTROPY.random_bytes(16) for _ in range(600))
    large = SYSTEM_ENTROPY.random_bytes(20000)
    return {small[i:i + 16] for i in range(0, len(small), 16)} | {large[i:i + 16] for i in range(0, 20000, 16)}
read, write = os.pipe()
if os.fork() == 0:
    blocks = b"".join(everything())
    with os.fdopen(write, "wb") as pipe:
        pipe.write(blocks)
    os._exit(0)
os.close(write)
with os.fdopen(read, "rb") as pipe:
    child = pipe.read()
os.wait()
child = {child[i:i + 16] for i in range(0, len(child), 16)}
assert len(child) > 1000
print(len(child & everything()))
"""


# Called from C, as pre-forking servers do: no Python hook runs in the child.
FORK_IN_C = "import ctypes; fork = ctypes.PyDLL(None).fork; "
NO_PROCESS_ID = "import os; os.getpid = lambda: 1"


def repeated_blocks(script: str) -> int:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("fork", ["os.fork", FORK_IN_C], ids=["python", "C"])
def test_a_forked_child_repeats_nothing_its_parent_draws(fork: str) -> None:
    script = IN_A_FORKED_CHILD if fork == "os.fork" else FORK_IN_C + IN_A_FORKED_CHILD.replace("os.fork()", "fork()")
    assert repeated_blocks(script) == 0


def test_without_the_process_id_a_child_forked_by_c_would_repeat() -> None:
    script = FORK_IN_C + IN_A_FORKED_CHILD.replace("os.fork()", "fork()")
    assert repeated_blocks(NO_PROCESS_ID + "\n" + script) > 1000


def test_a_child_forked_by_python_repeats_nothing_even_with_the_number_of_its_parent() -> None:
    assert repeated_blocks(NO_PROCESS_ID + "\n" + IN_A_FORKED_CHILD) == 0
    no_hook = "import os; os.register_at_fork = lambda **_: None\n"
    assert repeated_blocks(no_hook + NO_PROCESS_ID + "\n" + IN_A_FORKED_CHILD) > 1000


ONE_CELL_EACH = (
    FORK_IN_C
    + """
import os
from dpselect.noise.entropy import SYSTEM_ENTROPY
draw = {draw}
draw()
read, write = os.pipe()
if fork() == 0:
    os.write(write, repr([draw() for _ in range(40)]).encode())
    os._exit(0)
mine = repr([draw() for _ in range(40)])
os.wait()
print(int(os.read(read, 1 << 16).decode() == mine))
"""
)


@pytest.mark.parametrize("draw", ["SYSTEM_ENTROPY.cell", "lambda: SYSTEM_ENTROPY.words(9000, dtype='u1')[:9].tolist()"])
def test_every_way_of_drawing_notices_a_fork_from_c(draw: str) -> None:
    assert repeated_blocks(ONE_CELL_EACH.format(draw=draw)) == 0
    assert repeated_blocks(NO_PROCESS_ID + "\n" + ONE_CELL_EACH.format(draw=draw)) == 1


class Numbered(SeededEntropy):
    """A stream whose 16-bit words are all different, so that one served twice, or wiped too early, is seen."""

    def __init__(self) -> None:
        super().__init__(0)
        made = itertools.count(1)

        def generate(stream: entropy_module._Keystream, buffer: memoryview) -> None:
            words = [next(made) for _ in range(len(buffer) // 2)]
            buffer[:] = np.array(words, dtype=np.uint16).tobytes()

        kind = type("NumberedKeystream", (entropy_module._Keystream,), {"generate": generate, "__slots__": ()})
        self._stream = kind(self._key)


def handled_at_each_step(draw: Callable[[], object], handler: Callable[[], object]) -> None:
    """Run ``draw`` and, at every single step of it inside the entropy module, ``handler``, as a signal would."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != entropy_module.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            sys.settrace(None)
            try:
                handler()
            finally:
                sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        draw()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("way", ["cell", "bytes"])
def test_a_signal_handler_that_draws_in_the_middle_of_a_draw_shares_no_bytes(way: str) -> None:
    stream, served = Numbered(), list[int]()

    def draw() -> None:
        if way == "cell":
            served.append(stream.cell())
        else:
            served.extend(np.frombuffer(stream.random_bytes(4), dtype=np.uint16).tolist())

    while len(served) < 25_000:  # past several pools of 4,096 words, and at every step of filling one
        handled_at_each_step(draw, draw)
        if len(served) % 3 == 0:
            draw()
    assert len(set(served)) == len(served)
    assert 0 not in served


def test_threads_never_share_bytes() -> None:
    served: list[list[bytes]] = [[] for _ in range(4)]

    def draw(into: list[bytes]) -> None:
        for k in range(2000):
            into.append(SYSTEM_ENTROPY.random_bytes(16 if k % 10 else 6000)[:16])

    threads = [threading.Thread(target=draw, args=(into,)) for into in served]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = [block for into in served for block in into]
    assert len(set(blocks)) == len(blocks) == 8000


def test_bytes_are_served_once_whatever_line_is_interrupted() -> None:
    stream = SeededEntropy(11)
    served: list[bytes] = []
    for count in range(1, 200):
        for size in (16, 4096, 5000):  # from the pool, from a fresh pool, past the pool
            serve = functools.partial(lambda size: served.append(stream.random_bytes(size)[:16]), size)
            interrupted(serve, at=count, within=entropy_module.__file__)
            served.append(stream.random_bytes(16))
    assert len(set(served)) == len(served) > 600


def test_served_bytes_are_wiped_from_the_pool() -> None:
    stream = SeededEntropy(5)
    served = stream.random_bytes(32)
    stream.cell()
    assert served not in bytes(stream._stream.pool)
    assert bytes(stream._stream.pool[:34]) == bytes(34)


def test_a_seed_repeats_and_is_not_private() -> None:
    first, again, other = SeededEntropy(3), SeededEntropy(3), SeededEntropy(4)
    calls = [lambda s: s.random_bytes(9), lambda s: s.bits(77), lambda s: s.cell(), lambda s: s.below(10**9)]
    calls.append(lambda s: s.words(30000, dtype=np.uint16).tobytes())
    told = [[call(stream) for call in calls] for stream in (first, again, other)]
    assert told[0] == told[1] != told[2]
    assert not first.private
    assert SYSTEM_ENTROPY.private


def test_the_key_is_replaced_after_sixteen_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_module, "_ROTATE_AFTER", 1 << 16)
    keys: list[bytes] = []

    class Counted(SystemEntropy):
        def _key(self) -> tuple[bytes, bytes]:
            key = super()._key()
            keys.append(key[0])
            return key

    Counted().random_bytes(1 << 20)
    assert len(set(keys)) == 16


def test_the_system_source_is_never_copied() -> None:
    assert copy.deepcopy(SYSTEM_ENTROPY) is SYSTEM_ENTROPY
    assert pickle.loads(pickle.dumps(SYSTEM_ENTROPY)) is SYSTEM_ENTROPY  # noqa: S301
    assert isinstance(SYSTEM_ENTROPY, Entropy)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1000])
def test_numbers_below_a_bound_are_uniform(bound: int) -> None:
    stream, draws = SeededEntropy(bound), 20000
    counts = Counter(stream.below(bound) for _ in range(draws))
    assert set(counts) <= set(range(bound))
    statistic = sum((counts[k] - draws / bound) ** 2 / (draws / bound) for k in range(bound))
    assert statistic < chi2.isf(1e-6, max(bound - 1, 1))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 5000])
def test_words_fill_their_type(dtype: Any, count: int) -> None:
    words = SYSTEM_ENTROPY.words(count, dtype=dtype)
    assert words.dtype == dtype
    assert len(words) == count
    if count == 5000:
        assert words.max() > 0.99 * np.iinfo(dtype).max


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="dtype must be an unsigned integer type; got 'float64'"):
        SYSTEM_ENTROPY.words(3, dtype=np.float64)
    with pytest.raises(InvalidParameter, match="bound must be a whole number, 1 or more; got 0"):
        SYSTEM_ENTROPY.below(0)
    with pytest.raises(InvalidParameter, match=r"seed must be a whole number; got 1\.5"):
        SeededEntropy(1.5)  # type: ignore[arg-type]
