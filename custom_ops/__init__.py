"""The ex* operators of Rockchip's toolkit: contracts, numpy reference, ONNX lowering and Python-op runtime."""

from __future__ import annotations

from custom_ops.registration import register_custom_ops
from custom_ops.rewrite import IgnoredAttributeWarning, prepare, prepare_file
from custom_ops.runtime import last_error

__all__ = ["IgnoredAttributeWarning", "last_error", "prepare", "prepare_file", "register_custom_ops"]
