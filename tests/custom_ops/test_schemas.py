"""Shape inference of the onnx package sees through ex nodes."""

from __future__ import annotations

import subprocess
import sys

import onnx
import pytest

from custom_ops import schemas
from custom_ops.contracts import CONTRACTS
from tests.custom_ops import golden


def types(values: list[onnx.ValueInfoProto]) -> dict[str, tuple[int, object]]:
    return {v.name: (v.type.tensor_type.elem_type, schemas.shape_of(v.type)) for v in values}


@pytest.mark.parametrize("name", golden.names())
def test_inferred_shapes_are_those_the_toolkit_recorded(name: str) -> None:
    schemas.register()
    model = onnx.load(golden.load(name).fused)
    recorded = types([*model.graph.value_info, *model.graph.output])
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    found = types([*inferred.graph.value_info, *inferred.graph.output])
    assert {key: found.get(key) for key in recorded} == recorded


def test_registration_is_idempotent_and_complete() -> None:
    schemas.register()
    schemas.register()
    for name in CONTRACTS:
        assert onnx.defs.get_schema(name, 1, "").name == name


def test_onnx_reference_can_be_imported_after_registration() -> None:
    code = "from custom_ops import schemas; schemas.register(); import onnx.reference"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_broken_contract_is_a_shape_inference_error() -> None:
    schemas.register()
    graph = onnx.parser.parse_graph("g (float[1,7,2] x) => (float[1,3,2] y) { y = exGlu<axis=1>(x) }")
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)])
    with pytest.raises(onnx.shape_inference.InferenceError, match="odd size along axis 1"):
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
