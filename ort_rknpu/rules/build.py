"""Models that the vendor's toolkit refuses or dies on: measured conditions on nodes of the file and compiled rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.rules.clause import Clause
from ort_rknpu.rules.compiled import is_uniform
from ort_rknpu.rules.judge import Form, Violation, judge
from ort_rknpu.rules.measured import place
from ort_rknpu.targets.measurements import measured_rules
from ort_rknpu.targets.socs import Target

EVERY_ROW = "*"
"""Where the conditions stand that hold for rows of any op."""


@dataclass(frozen=True)
class Refusal:
    """One reason why the build fails; ``op`` is the node or row at fault, None where it is the model as a whole."""

    clause: Clause
    op: Op | None = None


def refused_nodes(graph: Graph, opset: int | None, target: Target) -> list[Refusal]:
    """Reasons that stand in the file: ``graph`` as loaded, before any rewrite, and its opset."""
    rules = measured_rules(target.toolkit)
    found = list(_model(graph, opset, target))
    for op in _every_op(graph):
        for limit in rules.refused_nodes.get(op.op_type, ()):
            text = f"The toolkit builds {op.op_type} with {{allowed}}."
            found.extend(Refusal(clause, op) for clause, known in judge(op, target, limit, _FORMS, text) if known)
    return found


def refused_rows(ops: Iterable[Op], target: Target) -> list[Refusal]:
    """Reasons that only the compiled rows show: ``ops`` after all rewrites."""
    rules = measured_rules(target.toolkit).refused_rows
    found: list[Refusal] = []
    for op in ops:
        for limit in (*rules.get(op.op_type, ()), *rules.get(EVERY_ROW, ())):
            text = f"The toolkit survives a compiled {op.op_type} with {{allowed}}."
            found.extend(Refusal(clause, op) for clause, known in judge(op, target, limit, _FORMS, text) if known)
    return found


def _every_op(graph: Graph) -> Iterator[Op]:
    for op in graph.ops:
        if op.outputs and all(value.constant for value in op.outputs):
            continue
        yield op
        for body in op.subgraphs.values():
            yield from _every_op(body)


def _model(graph: Graph, opset: int | None, target: Target) -> Iterator[Refusal]:
    newest = measured_rules(target.toolkit).newest_opset
    prefix = f"{target.soc.name}.model"
    source = f"measured {target.toolkit}: refused models"
    if opset is not None and opset > newest:
        text = f"The toolkit loads models up to opset {newest}."
        yield Refusal(Clause(f"{prefix}.opset", text, str(opset), f"up to {newest}", source, "convert the opset down"))
    if graph.outputs and all(value.constant for value in graph.outputs):
        text = "An output must depend on an input."
        yield Refusal(Clause(f"{prefix}.outputs", text, "all outputs are constant", "an output that varies", source))
    if target.precision == "int8" and not _has_float(graph):
        text = "There is nothing to quantise in a model without a float tensor."
        yield Refusal(Clause(f"{prefix}.floats", text, "no float tensor", "a float tensor", source))
    for value in graph.inputs:
        if value.shape is not None and 0 in value.shape:
            text = "No input may be empty."
            yield Refusal(Clause(f"{prefix}.inputs", text, f"{value.name}: {value.shape}", "sizes above 0", source))


def _has_float(graph: Graph) -> bool:
    tensors = [*graph.inputs, *(value for op in graph.ops for value in op.outputs)]
    return any(value.dtype is None or value.dtype.startswith("float") for value in tensors if not value.constant)


def _constants(op: Op) -> list[bool]:
    return [value is not None and value.constant for value in op.inputs]


_THROUGH = frozenset({"Add", "Mul", "Sub", "Div", "Relu", "Sigmoid", "Cast", "Dropout", "Identity"})


def _comes_transposed(value: Value | None, laid: frozenset[str], depth: int = 6) -> bool:
    """Whether element-wise ops alone stand between the tensor and an op that leaves a layout Transpose behind it."""
    producer = None if value is None else value.producer
    if producer is None or depth == 0:
        return False
    if producer.op_type in laid:
        return True
    return producer.op_type in _THROUGH and any(_comes_transposed(v, laid, depth - 1) for v in producer.inputs)


def fed_pixel(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
    """A Conv of one pixel needs data that some NPU row computed: no model input, and none behind CPU rows,
    layout changes and activations alone."""
    source = op.input(0)
    shape = None if source is None else source.static_shape
    if shape is None or len(shape) != 4 or (shape[0], *shape[2:]) != (1, 1, 1) or shape[1] > params["channels"]:
        return
    while source is not None and source.producer is not None:
        producer = source.producer
        passes = producer.op_type in ("Reshape", "Transpose") or producer.op_type in _THROUGH
        if not passes and place(producer, target).device == "npu":
            return
        source = next((value for value in producer.inputs if value is not None and not value.constant), None)
    if source is not None:
        allowed = f"more than {params['channels']} channels, or the result of an NPU op that computes"
        yield Violation(f"{shape[1]} channels from the model input {source.name}", allowed, "convert more rows at once")


def leading_constants(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
    """A Concat may not start with two constants where a later input comes out of a layout Transpose."""
    constants = _constants(op)
    count = constants.index(False) if False in constants else len(constants)
    if count < params["count"] or op.outputs[0].rank == 4:
        return
    laid = frozenset(params["laid_out_by"])
    if any(_comes_transposed(value, laid) for value in op.inputs[count:]):
        yield Violation(f"{count} constants first", "one constant first", "concatenate the constants beforehand")


def attention_scale(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
    """Attention of rank 4 may not go straight from the product of queries and keys into Softmax.

    It may with several batches of several heads: those are folded into one dimension before.
    """
    first = op.input(0)
    producer = None if first is None else first.producer
    if first is None or first.rank != 4 or producer is None or producer.op_type != "MatMul":
        return
    shape = first.static_shape
    if shape is None or (shape[0] > 1 and shape[1] > 1):
        return
    readers = op.outputs[0].consumers()
    if any(_constants(producer)) or len(readers) != 1 or readers[0].op_type != "MatMul" or any(_constants(readers[0])):
        return
    axis = op.attr("axis", -1)
    if axis in (-1, 3) and readers[0].input(0) is op.outputs[0]:
        yield Violation(
            "no scale or mask between MatMul and Softmax", "a scale or a mask there", "scale the product, not the query"
        )


def uniform_bias(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
    """The bias of packed queries, keys and values of a batch of one may not be one number repeated."""
    bias = next((v for v in op.inputs if v is not None and v.constant), None)
    product = next((v for v in op.inputs if v is not None and not v.constant), None)
    if bias is None or product is None or product.producer is None or product.producer.op_type != "MatMul":
        return
    if not is_uniform(bias) or True not in _constants(product.producer):
        return
    if product.static_shape is None or product.static_shape[0] != 1:
        return
    if _is_split(op.outputs[0], frozenset(params["split_by"]), params["perm"]):
        yield Violation("all elements equal", "a bias of differing elements", "leave the bias out")


def _is_split(value: Value, split_by: frozenset[str], perm: list[int]) -> bool:
    """Whether a Reshape, and perhaps a Transpose by ``perm``, lead to a Split or to several Gathers or Slices."""
    readers = value.consumers()
    if len(readers) != 1 or readers[0].op_type != "Reshape":
        return False
    value = readers[0].outputs[0]
    readers = value.consumers()
    if len(readers) == 1 and readers[0].op_type == "Transpose":
        if list(readers[0].attr("perm", ())) != perm:
            return False
        value = readers[0].outputs[0]
        readers = value.consumers()
    if len(readers) == 1:
        return readers[0].op_type == "Split"
    return len(readers) > 1 and all(reader.op_type in split_by for reader in readers)


def twin_heads(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
    """Two products of one tensor with constants may not be added up."""
    producers = [value.producer for value in op.inputs if value is not None and value.producer is not None]
    if len(producers) != 2 or any(producer.op_type not in params["products"] for producer in producers):
        return
    first, second = producers
    if not all(producer.input(1) is not None and _constants(producer)[1] for producer in producers):
        return
    if first is not second and first.input(0) is second.input(0) and first.input(0) is not None:
        yield Violation(f"the sum of two {first.op_type} of one tensor", "products of differing tensors")


_FORMS: dict[str, Form] = {
    "attention_scale": attention_scale,
    "fed_pixel": fed_pixel,
    "leading_constants": leading_constants,
    "twin_heads": twin_heads,
    "uniform_bias": uniform_bias,
}
