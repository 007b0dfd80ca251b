"""Passes leave the caller's random state alone and draw the same numbers each time."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import torch

from interp.hooks.undisturbed import random_state, undisturbed

CPU = torch.device("cpu")


def draw() -> tuple[float, float, float]:
    return float(torch.rand(())), random.random(), float(np.random.rand())


@pytest.mark.parametrize("fails", [False, True])
def test_every_generator_is_as_it_was_at_the_end(fails: bool) -> None:
    draw(), draw()
    before = random_state(CPU)
    try:
        with undisturbed(CPU, gradients=False):
            draw()
            assert random_state(CPU) != before
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    assert random_state(CPU) == before


def test_the_same_seed_draws_the_same_numbers_whatever_the_callers_state() -> None:
    drawn = []
    for seed in (0, 0, 1):
        draw()
        with undisturbed(CPU, gradients=False, seed=seed):
            drawn.append(draw())
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[0], drawn[2], strict=True))


def test_passes_that_draw_wait_for_each_other() -> None:
    alone, drawn = [], []
    with undisturbed(CPU, gradients=False):
        alone = [draw() for _ in range(200)]
    before = random_state(CPU)

    def work() -> None:
        with undisturbed(CPU, gradients=False):
            drawn.append([draw() for _ in range(200)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [alone] * 4
    assert random_state(CPU) == before


def test_passes_that_draw_nothing_do_not_wait() -> None:
    inside = threading.Event()

    def work() -> None:
        with undisturbed(CPU, gradients=False, seed=None):
            inside.set()

    with undisturbed(CPU, gradients=False):
        thread = threading.Thread(target=work)
        thread.start()
        assert inside.wait(10)
    thread.join()


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("gradients", [False, True])
def test_the_grad_mode_is_the_pass_own(gradients: bool, seed: int | None) -> None:
    with torch.inference_mode(), undisturbed(CPU, gradients=gradients, seed=seed):
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled() is gradients
