"""The registry of sample models: ``python -m models.samples OUT [NAME...]`` writes them as ONNX files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx

from models.net import Net

ZOO = ("classify", "detect", "generate", "language", "points", "recurrent", "segment", "sequence", "speech", "vision")

Builder = Callable[[Net], None]
_REGISTRY: dict[str, Sample] = {}


@dataclass(frozen=True)
class Sample:
    """One model: its family and how to build it."""

    name: str
    family: str
    builder: Builder
    opset: int
    options: dict[str, Any]

    def build(self) -> onnx.ModelProto:
        """The model; the same every time."""
        net = Net(self.name, self.opset, **self.options)
        self.builder(net)
        return net.build()


def sample(family: str, opset: int = 13, **options: Any) -> Callable[[Builder], Builder]:
    """Registers a function that fills a :class:`Net`; the function's name is the model's."""

    def register(builder: Builder) -> Builder:
        name = builder.__name__
        if name in _REGISTRY:
            raise ValueError(f"two samples are called {name}")
        _REGISTRY[name] = Sample(name, family, builder, opset, options)
        return builder

    return register


def samples() -> dict[str, Sample]:
    """Every sample model by name."""
    for module in ZOO:
        import_module(f"models.zoo.{module}")
    return dict(sorted(_REGISTRY.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the models asked for, all without names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    known = samples()
    for name in options.names or known:
        model = known[name].build()
        onnx.save(model, str(options.out / f"{name}.onnx"))
        print(f"{name}: {known[name].family}, {len(model.graph.node)} nodes")


if __name__ == "__main__":
    # The builders import this module by its name, and must register in that one.
    import_module("models.samples").main()
