"""flint's precision: one thread at a time, and always put back."""

from __future__ import annotations

import threading

import pytest
from flint import ctx

from dpselect.precision import working_precision


def test_precision_is_put_back_also_after_a_failure() -> None:
    before = ctx.prec
    with pytest.raises(RuntimeError), working_precision(300):
        raise RuntimeError
    assert ctx.prec == before


def test_threads_do_not_change_each_others_precision() -> None:
    seen: list[bool] = []

    def work(bits: int) -> None:
        for _ in range(300):
            with working_precision(bits):
                seen.append(ctx.prec == bits)
                with working_precision(bits + 64):
                    pass
                seen.append(ctx.prec == bits)

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2400
    assert all(seen)
