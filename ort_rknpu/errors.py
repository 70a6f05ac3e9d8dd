"""Errors that callers can catch; all derive from :class:`RknpuError`."""

from __future__ import annotations

from custom_ops.errors import ModelError, OpError, OpRuntimeError, RegistrationError, RknpuError, UnknownOpError

__all__ = [
    "MISFITS",
    "CalibrationError",
    "ModelError",
    "OpError",
    "OpRuntimeError",
    "OptionError",
    "PlacementError",
    "RegistrationError",
    "RknpuError",
    "RuleDataError",
    "TargetError",
    "ToolkitError",
    "UnknownOpError",
]


MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What code that reads a node runs into where the node lacks an input, attribute or dimension of its operator."""


class TargetError(RknpuError, ValueError):
    """An unknown SoC, back end, precision or toolkit version; the message lists the valid ones."""


class OptionError(RknpuError, ValueError):
    """An unknown option key or value; the message lists the valid ones."""


class RuleDataError(RknpuError):
    """A shipped rule file is inconsistent: an unknown field, a missing source, a malformed interval."""


class PlacementError(RknpuError, RuntimeError):
    """``fallback="error"`` was asked for and some nodes are not claimed; ``nodes`` lists them."""

    def __init__(self, message: str, nodes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class CalibrationError(RknpuError, ValueError):
    """Calibration data is missing or does not fit the model's inputs."""


class ToolkitError(RknpuError, RuntimeError):
    """The vendor's toolkit, or the interpreter that should run it, is missing or failed."""
