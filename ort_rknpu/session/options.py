"""Options of the execution provider: every key with its values, checked when a session is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ort_rknpu.errors import OptionError, TargetError
from ort_rknpu.targets.socs import PRECISIONS, TOOLKITS, Target, get_target, socs

PROVIDER = "RknpuExecutionProvider"

_CHOICES: dict[str, tuple[str, ...]] = {
    "precision": PRECISIONS,
    "toolkit": TOOLKITS,
    "rules": ("measured", "documented"),
    "numerics": ("npu", "float32"),
    "cpu_numerics": ("float32", "fp16"),
    "fallback": ("cpu", "error"),
    "ops": ("native", "python"),
    "fused": ("simulator", "once"),
    "overflow": ("inf", "saturate"),
    "count_overflow": ("0", "1"),
}


@dataclass(frozen=True)
class ProviderOptions:
    """What ``RknpuExecutionProvider`` is asked for; every value is a string, as in ONNX Runtime.

    Attributes:
        soc: the chip, required.
        precision: ``fp16`` or ``int8``; empty until :meth:`parse` fills in the chip's default.
        toolkit: the toolkit version whose compiler is followed.
        rules: ``measured`` (what the compiler was seen to do) or ``documented`` (the operator list alone).
        numerics: ``npu``, or ``float32`` to change no number.
        cpu_numerics: ``float32``, or ``fp16`` to round what CPU ops write too, as the vendor's runtime does.
        fallback: ``cpu``, or ``error`` to raise where a node is not claimed.
        ops: ex operators as ``native`` ONNX or as ``python`` operators.
        calibration: a folder of ``npy`` or ``npz`` files, for int8 numerics.
        fused: fp16 rounding of fused layer rows: ``simulator`` (as the vendor's simulator) or ``once``.
        overflow: beyond float16: ``inf``, or ``saturate`` at 65504.
        count_overflow: ``1`` counts overflows of every run, see ``InferenceSession.overflows``.
    """

    soc: str
    precision: str = ""
    toolkit: str = "2.3.2"
    rules: str = "measured"
    numerics: str = "npu"
    cpu_numerics: str = "float32"
    fallback: str = "cpu"
    ops: str = "native"
    calibration: str = ""
    fused: str = "simulator"
    overflow: str = "inf"
    count_overflow: str = "0"

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> ProviderOptions:
        """Checks a provider's options.

        Raises:
            OptionError: an unknown key or value, with the valid ones; ``soc`` is missing.
        """
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise OptionError(f"{PROVIDER}: unknown option {unknown[0]!r}; known: {', '.join(known)}")
        values = {key: str(value) for key, value in given.items()}
        if not values.get("soc"):
            raise OptionError(f"{PROVIDER}: option 'soc' is required; known: {', '.join(socs())}")
        for key, value in values.items():
            choices = _CHOICES.get(key)
            if choices is not None and value not in choices and not (key == "precision" and not value):
                raise OptionError(f"{PROVIDER}: {key}={value!r} is not one of {', '.join(choices)}")
        try:
            target = get_target(values["soc"], values.get("precision") or None, values.get("toolkit", cls.toolkit))
        except TargetError as error:
            raise OptionError(f"{PROVIDER}: {error}") from error
        return cls(**{**values, "soc": target.soc.name, "precision": target.precision})

    @property
    def target(self) -> Target:
        """The chip, precision and toolkit asked for."""
        return get_target(self.soc, self.precision or None, self.toolkit)

    def to_dict(self) -> dict[str, str]:
        """The options as ``get_provider_options`` reports them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
