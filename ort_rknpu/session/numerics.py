"""The model that ONNX Runtime runs in the place of the user's: NPU numerics for one assignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import onnx
from onnxruntime.quantization import CalibrationDataReader

from custom_ops.loading import embed_external_data, external_tensors
from custom_ops.rewrite import rewrite
from ort_rknpu.errors import CalibrationError, ModelError
from ort_rknpu.session.half import DISABLED_OPTIMIZERS, CompiledGroup, FusedRounding, HalfOptions, emulate_half
from ort_rknpu.session.int8 import DEQUANTIZED, emulate_int8
from ort_rknpu.session.options import ProviderOptions
from ort_rknpu.session.proto import node_id
from ort_rknpu.session.widen import widen_half


@dataclass(frozen=True)
class NpuModel:
    """A model whose numbers are the NPU's.

    Attributes:
        model: without ex nodes, or with them as Python operators.
        rounded: tensors that are rounded to float16, in graph order.
        counted: those of them in which overflows are counted.
        disabled_optimizers: of ONNX Runtime, for this model.
        session_entries: session configuration this model needs.
        aliases: tensor of the user's model -> the tensor here that holds what its readers see, where that is another.
    """

    model: onnx.ModelProto
    rounded: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    disabled_optimizers: tuple[str, ...] = ()
    session_entries: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)


def npu_model(
    proto: onnx.ModelProto,
    groups: Sequence[CompiledGroup],
    values: Sequence[onnx.ValueInfoProto],
    options: ProviderOptions,
    reader: Callable[[], CalibrationDataReader] | None = None,
    folder: Path | None = None,
) -> NpuModel:
    """Rewrites ``proto`` for the numerics asked for.

    Args:
        proto: the user's model, not changed.
        groups: what each compiled op computes.
        values: types and shapes of its tensors.
        options: the provider's.
        reader: makes the reader of calibration samples; needed for int8.
        folder: where external data of ``proto`` lies.

    Raises:
        CalibrationError: int8 without calibration data, or data that does not fit.
        ModelError, OpError: the model, or an ex node in it.
    """
    kind: Literal["native", "python"] = "python" if options.ops == "python" else "native"

    def lower(model: onnx.ModelProto) -> onnx.ModelProto:
        return rewrite(model, kind, raises=True)

    work = onnx.ModelProto()
    work.CopyFrom(proto)
    if options.numerics == "float32":
        return NpuModel(lower(work))
    if options.precision == "int8":
        return _int8(work, groups, reader, lower, folder)
    renamed = widen_half(work)
    devices = {"npu"} if options.cpu_numerics == "float32" else {"npu", "cpu", "unsupported", "unknown"}
    fused: FusedRounding = "once" if options.fused == "once" else "simulator"
    half = emulate_half(
        work,
        [_renamed(group, renamed) for group in groups],
        HalfOptions(frozenset(devices), fused, options.overflow == "saturate", options.count_overflow == "1"),
        lower,
        _widened(values, renamed),
    )
    return NpuModel(half.model, half.rounded, half.counted, DISABLED_OPTIMIZERS, aliases=renamed)


def _renamed(group: CompiledGroup, renamed: Mapping[str, str]) -> CompiledGroup:
    if not renamed:
        return group
    nodes, inputs = (frozenset(renamed.get(name, name) for name in names) for names in (group.nodes, group.inputs))
    return replace(group, nodes=nodes, inputs=inputs)


def _widened(values: Sequence[onnx.ValueInfoProto], renamed: Mapping[str, str]) -> list[onnx.ValueInfoProto]:
    result = []
    for value in values:
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(value)
        if copy.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16:
            copy.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            copy.name = renamed.get(value.name, value.name)
        result.append(copy)
    return result


def _int8(
    work: onnx.ModelProto,
    groups: Sequence[CompiledGroup],
    reader: Callable[[], CalibrationDataReader] | None,
    lower: Callable[[onnx.ModelProto], onnx.ModelProto],
    folder: Path | None,
) -> NpuModel:
    if reader is None:
        raise CalibrationError(
            "int8 numerics need calibration data: calibration=FOLDER as a provider option, or calibration=SAMPLES "
            "(mappings from input names to arrays) as a keyword; numerics=float32 runs without"
        )
    if external_tensors(work) and not (folder is not None and embed_external_data(work, folder)):
        raise ModelError("int8 numerics need weights that fit into one file, that is less than 2 GiB")
    model = emulate_int8(work, groups, reader(), lower)
    present = {name for node in model.graph.node for name in node.output}
    aliases = {name[: -len(DEQUANTIZED)]: name for name in present if name.endswith(DEQUANTIZED)}
    return NpuModel(model, session_entries={"session.disable_quant_qdq": "1"}, aliases=aliases)


def restrict(groups: Sequence[CompiledGroup], proto: onnx.ModelProto) -> list[CompiledGroup]:
    """The groups as far as their nodes are in ``proto``."""
    present = {node_id(node) for node in proto.graph.node}
    cut = [replace(group, nodes=group.nodes & present) for group in groups]
    return [group for group in cut if group.nodes]
