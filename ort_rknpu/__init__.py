"""ONNX Runtime custom operators and an emulated execution provider for Rockchip NPUs.

Names are loaded on first use, so that ``import ort_rknpu`` stays light.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from ort_rknpu._version import __version__

_EXPORTS: dict[str, str] = {
    # public name -> module that holds it
    "check": "ort_rknpu.check",
    "compare": "ort_rknpu.compare.compare",
    "diff": "ort_rknpu.compare.diff",
    "extract": "ort_rknpu.compare.extract",
    "Report": "ort_rknpu.report",
    "InferenceSession": "ort_rknpu.session.inference",
    "RknpuExecutionProvider": "ort_rknpu.session.provider",
    "last_error": "custom_ops",
    "prepare": "custom_ops",
    "register_custom_ops": "custom_ops",
    "socs": "ort_rknpu.listing",
    "spec": "ort_rknpu.listing",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'ort_rknpu' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})


class _Package(ModuleType):
    """Keeps ``ort_rknpu.check`` the function: importing the submodule of that name would bind the module here."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _EXPORTS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
