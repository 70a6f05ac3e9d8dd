"""Int8 numerics: ONNX Runtime's own quantiser on the nodes the NPU takes, everything else left in float.

Weights are quantised per channel, activations per tensor and asymmetrically, at the boundaries of compiled ops only.
The toolkit's own quantiser chooses its scales differently: results are alike, not equal.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from ort_rknpu.errors import CalibrationError, ModelError
from ort_rknpu.session.half import CompiledGroup
from ort_rknpu.session.proto import GraphIndex, node_id, opset, owning_nodes

_PER_CHANNEL_OPSET = 13
DEQUANTIZED = "_DequantizeLinear_Output"
"""What the quantiser appends to a tensor's name for the values its readers see."""


def emulate_int8(
    model: onnx.ModelProto,
    groups: Sequence[CompiledGroup],
    reader: CalibrationDataReader,
    lower: Callable[[onnx.ModelProto], onnx.ModelProto] | None = None,
) -> onnx.ModelProto:
    """``model`` with quantised NPU ops, to be run with ``session.disable_quant_qdq=1``.

    Args:
        model: the user's model, not changed; weights inside the file.
        groups: what the compiler makes of it.
        reader: calibration samples.
        lower: replaces ex nodes, keeping their output names.

    Raises:
        CalibrationError: from the reader, or the quantiser cannot use the samples.
        ModelError: the quantiser refuses the model.
    """
    index = GraphIndex(model)
    work = onnx.ModelProto()
    work.CopyFrom(model)
    if lower is not None:
        work = lower(work)
    if opset(work) < _PER_CHANNEL_OPSET:
        try:
            work = version_converter.convert_version(work, _PER_CHANNEL_OPSET)
        except Exception as error:
            raise ModelError(f"opset {opset(work)} cannot be converted to {_PER_CHANNEL_OPSET}: {error}") from error
    owners = owning_nodes(GraphIndex(work), index)
    on_npu = frozenset().union(*(group.nodes for group in groups if group.device == "npu"))
    _name_nodes(work.graph)
    chosen = [node.name for node in work.graph.node if owners.get(node_id(node)) in on_npu]
    if not chosen:
        return work
    quantized = _quantize(work, chosen, reader)
    _drop_inner_pairs(quantized, _inner_tensors(index, groups, GraphIndex(work), owners))
    return quantized


def _name_nodes(graph: onnx.GraphProto) -> None:
    taken: set[str] = set()
    for node in graph.node:
        if not node.name or node.name in taken:
            node.name = f"{node_id(node)}/{node.op_type}"
        taken.add(node.name)


def _quantize(model: onnx.ModelProto, names: list[str], reader: CalibrationDataReader) -> onnx.ModelProto:
    root = logging.getLogger()
    level = root.level
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "quantized.onnx"
        try:
            root.setLevel(logging.ERROR)
            quantize_static(
                model,
                target,
                reader,
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                nodes_to_quantize=names,
            )
        except CalibrationError:
            raise
        except Exception as error:
            raise ModelError(f"ONNX Runtime's quantiser refuses the model: {error}") from error
        finally:
            root.setLevel(level)
        return onnx.load(target)


def _inner_tensors(
    original: GraphIndex, groups: Sequence[CompiledGroup], lowered: GraphIndex, owners: dict[str, str]
) -> set[str]:
    """Tensors that stay inside one compiled op: between fused nodes, and within a lowered ex node."""
    rows: dict[str, list[CompiledGroup]] = {}
    for group in groups:
        for identity in group.nodes:
            rows.setdefault(identity, []).append(group)
    inner = set()
    for name, producer in lowered.producer.items():
        readers = lowered.readers.get(name, [])
        owner = owners.get(producer, "")
        if not readers or name in lowered.outputs:
            continue
        if all(
            owners.get(reader) == owner or any(owners.get(reader) in row.nodes for row in rows.get(owner, ()))
            for reader in readers
        ):
            inner.add(name)
    return inner - original.outputs


def _drop_inner_pairs(model: onnx.ModelProto, inner: set[str]) -> None:
    """Takes QuantizeLinear -> DequantizeLinear away from ``inner`` tensors."""
    direct: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] in inner:
            direct[node.output[0]] = node.input[0]
        elif node.op_type == "DequantizeLinear" and node.input[0] in direct:
            direct[node.output[0]] = direct[node.input[0]]
    kept = []
    for node in model.graph.node:
        if node.output[0] in direct:
            continue
        for position, name in enumerate(node.input):
            node.input[position] = direct.get(name, name)
        kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
