"""Settings of torch that hold for the whole process and change what a step computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.is_grad_enabled()": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.are_deterministic_algorithms_enabled()": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "torch.get_num_threads()": (torch.get_num_threads, torch.set_num_threads),
}
"""How each is read and set, by the name under which it is told."""
