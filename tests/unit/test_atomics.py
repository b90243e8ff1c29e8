"""What threads share: whoever comes first, nothing is lost."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from leafwise.kernels.compiling.atomics import atomic_add, atomic_exchange, atomic_load, lock, unlock, yield_thread

N_THREADS = 4
N = 500 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 50_000
compiled = numba.njit(nogil=True)


@compiled
def add_ones(shared, found):
    for k in range(len(found)):
        found[k] = atomic_add(shared, 0, np.int64(1))


@compiled
def swap_in(shared, found):
    """Leave numbers of one's own, the next each time; note what was there."""
    first = found[0]
    for k in range(len(found)):
        found[k] = atomic_exchange(shared, 0, np.int64(first + k))


@compiled
def add_locked(shared, found):
    """Plain additions, which lose some unless there is one at a time."""
    for _ in range(len(found)):
        lock(shared, 8)
        shared[0] += 1
        unlock(shared, 8)


@compiled
def wait(shared):
    """Whether another thread's number is seen some day; an ordinary load would be taken out of the loop."""
    n = 3 * 10**9
    while n > 0 and atomic_load(shared, 0) == 0:
        n -= 1
    return n > 0


@compiled
def take_turns(shared, found):
    """Wait for one's turn, over and over; what is written before the turn passes must be there in the next."""
    me = found[0]
    for k in range(len(found)):
        for _ in range(10**7):
            if atomic_load(shared, 0) % N_THREADS == me:
                break
            yield_thread()
        shared[8] += 1
        found[k] = shared[8]
        atomic_add(shared, 0, np.int64(1))


@pytest.fixture(autouse=True)
def threads_change_often():
    """Where nothing is compiled, the interpreter would else run one thread to its end, and then the next."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(kernel, n, firsts):
    """Run the kernel in all threads at once; the shared numbers, and what each thread found."""
    shared, found = np.zeros(16, np.int64), np.zeros((N_THREADS, n), np.int64)
    found[:, 0] = firsts
    kernel(shared.copy(), found[0, :1].copy())  # compiles it
    start = threading.Barrier(N_THREADS)

    def work(k):
        start.wait()
        kernel(shared, found[k])

    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(work, range(N_THREADS)))
    return shared, found


def test_additions_are_all_there_and_each_saw_another_number():
    shared, found = together(add_ones, N, 0)
    assert shared[0] == N_THREADS * N
    assert np.array_equal(np.sort(found, axis=None), np.arange(N_THREADS * N))
    assert (np.diff(found) > 0).all()


def test_what_is_swapped_out_is_what_was_swapped_in():
    shared, found = together(swap_in, N, 1 + N * np.arange(N_THREADS))
    assert np.array_equal(np.sort([*found.ravel(), shared[0]]), np.arange(N_THREADS * N + 1))


def test_a_lock_lets_one_in_at_a_time():
    shared, _ = together(add_locked, N, 0)
    assert shared[0] == N_THREADS * N
    assert shared[8] == 0


def test_what_was_written_before_is_seen_after():
    n = N // 50
    shared, found = together(take_turns, n, np.arange(N_THREADS))
    assert shared[0] == N_THREADS * n
    assert np.array_equal(found.T.ravel(), np.arange(1, N_THREADS * n + 1))


def test_a_number_from_another_thread_is_seen():
    shared = np.zeros(1, np.int64)
    assert wait(np.ones(1, np.int64))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, shared)
        time.sleep(0.01)
        shared[0] = 1
        assert waiting.result()
