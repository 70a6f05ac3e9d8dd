"""A model file as a resolved graph view: shapes, dtypes and constants known, weights not needed."""

from __future__ import annotations

from ort_rknpu.model.view import Model, NodeInfo

__all__ = ["Model", "NodeInfo"]
