"""What a rule says about a node: violated clauses and the device that follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Device = Literal["npu", "cpu", "unsupported", "unknown"]


@dataclass(frozen=True)
class Clause:
    """One violated requirement.

    Attributes:
        id: ``<target>.<op>.<limit>``, stable across versions, for example ``rk3588.Resize.scale``.
        text: one sentence that says what is required.
        actual: what the node has.
        allowed: what would be accepted.
        source: where the rule stands: ``documented 3.2.54`` or ``measured 2.3.2: probes Resize linear``.
        hint: what to change so that it passes.
    """

    id: str
    text: str
    actual: str
    allowed: str
    source: str
    hint: str = ""

    def to_dict(self) -> dict[str, str]:
        """The clause as in ``check --format json``."""
        return asdict(self)


@dataclass(frozen=True)
class Placement:
    """Where one op goes and every clause that keeps it off the NPU (empty for a clean ``npu``)."""

    device: Device
    clauses: tuple[Clause, ...] = ()

    @property
    def overflows(self) -> bool:
        """Unsupported although the compiler prints ``NPU``: what it writes does not fit the NPU's registers."""
        return self.device == "unsupported" and all(clause.id.endswith(".overflow") for clause in self.clauses)
