"""Runs a model and hands out any of its inner tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime

from ort_rknpu.errors import ModelError


class Probe:
    """A session on a model of which every tensor asked for is an output.

    Attributes:
        session: the ONNX Runtime session on the CPU.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        tensors: Iterable[str] = (),
        disabled_optimizers: Collection[str] = (),
        session_entries: Mapping[str, str] | None = None,
    ) -> None:
        """Makes the session; ``model`` is not changed.

        Args:
            model: holds no ex node.
            tensors: inner tensors that :meth:`run` may be asked for, besides the outputs.
            disabled_optimizers: names of ONNX Runtime's graph optimisers to leave out.
            session_entries: session configuration.

        Raises:
            ModelError: ONNX Runtime refuses the model.
        """
        extended = onnx.ModelProto()
        extended.CopyFrom(model)
        present = {output.name for output in extended.graph.output}
        extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name not in present)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        for key, value in (session_entries or {}).items():
            options.add_session_config_entry(key, value)
        try:
            self.session = onnxruntime.InferenceSession(
                extended.SerializeToString(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=set(disabled_optimizers),
            )
        except Exception as error:
            raise ModelError(f"ONNX Runtime refuses the model: {error}") from error

    def run(self, feeds: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """The tensors called ``names`` for one set of inputs.

        Raises:
            ModelError: ONNX Runtime cannot run the model on these inputs.
        """
        try:
            return dict(zip(names, self.session.run(list(names), dict(feeds))))
        except Exception as error:
            raise ModelError(f"the model does not run on these inputs: {error}") from error
