"""Errors of the package: one common base, one type per kind of cause."""

from __future__ import annotations


class RknpuError(Exception):
    """Base of every error that ort-rknpu raises on purpose."""


class ModelError(RknpuError, ValueError):
    """A model file or graph cannot be used: unreadable, inconsistent, or with unknown shapes where one is needed."""


class OpError(RknpuError, ValueError):
    """One node breaks its operator's contract; the message names the node, the op and what was expected."""


class UnknownOpError(OpError):
    """A node names an ex* operator that does not exist or has no public semantics."""


class OpRuntimeError(RknpuError, RuntimeError):
    """A Python op failed while a session ran; ``__cause__`` is the original exception."""


class RegistrationError(RknpuError, RuntimeError):
    """The Python ops cannot be added to these session options any more; the message says which call to move."""


class ArgumentError(RknpuError, ValueError):
    """An argument of a function has a value that it does not take; the message lists the valid ones."""
