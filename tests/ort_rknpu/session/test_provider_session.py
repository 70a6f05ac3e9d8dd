"""The session with ``RknpuExecutionProvider``: claims, numbers, and everything users do with a session."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_rknpu
from ort_rknpu.check import check
from ort_rknpu.compare.metrics import half_ulps
from ort_rknpu.compare.probe import Probe
from ort_rknpu.errors import CalibrationError, OptionError, PlacementError
from ort_rknpu.session.assignment import assign
from ort_rknpu.session.feeds import random_feeds
from ort_rknpu.session.half import DISABLED_OPTIMIZERS
from ort_rknpu.session.numerics import npu_model
from ort_rknpu.session.options import PROVIDER, ProviderOptions
from ort_rknpu.session.provider import RknpuExecutionProvider
from tests.custom_ops import golden

WHOLE = ["_models/vit", "_models/yolo_like"]


def source(name: str) -> Path:
    return golden.load(name).fused.with_name("source.onnx")


def session(model: Any, options: Any = None, **given: str) -> ort_rknpu.InferenceSession:
    providers = [(PROVIDER, {"soc": "rk3588", **given}), "CPUExecutionProvider"]
    return ort_rknpu.InferenceSession(model, options, providers=providers)


def mixed(batch: int | str = 1) -> onnx.ModelProto:
    """Conv, Relu (NPU), Sin (CPU), Mul by a constant (NPU)."""
    rng = np.random.default_rng(5)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Sin", ["r"], ["s"], "sin"),
        helper.make_node("Mul", ["s", "k"], ["y"], "mul"),
    ]
    constants = {"w": rng.standard_normal((8, 8, 3, 3)), "b": rng.standard_normal(8), "k": np.array(0.3)}
    graph = helper.make_graph(
        nodes,
        "mixed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 8, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 8, 8, 8])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feed(batch: int = 1, seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((batch, 8, 8, 8)).astype(np.float32)}


@pytest.mark.parametrize("name", WHOLE)
def test_float32_numerics_equal_stock_onnxruntime(name: str) -> None:
    case = golden.load(name)
    expected = onnxruntime.InferenceSession(source(name), providers=["CPUExecutionProvider"]).run(None, case.inputs)
    found = session(source(name), numerics="float32").run(None, case.inputs)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found))


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("form", ["source.onnx", "fused.onnx"])
def test_whole_models_are_within_4_ulp_of_the_vendors_simulator(name: str, form: str) -> None:
    case = golden.load(name)
    with np.load(case.fused.with_name("io.npz")) as data:
        simulated = data["toolkit_sim_y"]
    found = session(case.fused.with_name(form), cpu_numerics="fp16").run(None, case.inputs)[0]
    assert half_ulps(simulated, found).max() <= 4


@pytest.mark.parametrize("rules", ["measured", "documented"])
def test_partitions_are_those_of_check(rules: str) -> None:
    made = session(mixed(), rules=rules)
    report = check(mixed(), "rk3588", rules=rules).targets[0]
    assert made.assignment is not None
    assert made.assignment.result.partitions == report.partitions
    info = made.get_provider_graph_assignment_info()
    assert [(found.ep_name, [node.name for node in found.get_nodes()]) for found in info] == [
        (PROVIDER, ["conv", "relu"]),
        ("CPUExecutionProvider", ["sin"]),
        (PROVIDER, ["mul"]),
    ]


def test_cpu_partitions_run_in_float32_or_as_the_vendors_runtime_keeps_them() -> None:
    x = {"x": np.full((1, 8, 8, 8), 0.25, np.float32)}
    tensors = {}
    for numerics in ("float32", "fp16"):
        options = ProviderOptions.parse({"soc": "rk3588", "cpu_numerics": numerics})
        assignment = assign(mixed(), options)
        built = npu_model(assignment.proto, assignment.groups, assignment.values, options)
        tensors[numerics] = Probe(built.model, ["r", "s", "y"], DISABLED_OPTIMIZERS).run(x, ["r", "s", "y"])
    for found in tensors.values():
        assert np.array_equal(found["r"], found["r"].astype(np.float16))
        assert np.array_equal(found["y"], found["y"].astype(np.float16))
    exact, kept = tensors["float32"]["s"], tensors["fp16"]["s"]
    assert np.allclose(exact, np.sin(tensors["float32"]["r"]), rtol=1e-6, atol=1e-7)
    assert not np.array_equal(exact, exact.astype(np.float16))
    assert np.array_equal(kept, exact.astype(np.float16))


def test_fallback_error_lists_what_is_not_claimed() -> None:
    with pytest.raises(PlacementError, match="1 of 4 nodes are not claimed by the NPU: sin") as caught:
        session(mixed(), fallback="error")
    assert caught.value.nodes == ("sin",)
    wholly = mixed()
    wholly.graph.node[2].op_type = "Sigmoid"
    session(wholly, fallback="error")


def test_providers_and_options_are_reported_and_can_be_changed() -> None:
    made = session(mixed())
    assert made.get_providers() == [PROVIDER, "CPUExecutionProvider"]
    assert made.get_provider_options()[PROVIDER]["precision"] == "fp16"
    rounded = made.run(None, feed())[0]
    made.set_providers(["CPUExecutionProvider"])
    assert made.get_providers() == ["CPUExecutionProvider"]
    assert made.assignment is None
    exact = made.run(None, feed())[0]
    assert not np.array_equal(rounded, exact)
    made.set_providers([(PROVIDER, {"soc": "rk3576"})])
    assert made.get_provider_options()[PROVIDER]["soc"] == "rk3576"
    assert made.get_providers() == [PROVIDER, "CPUExecutionProvider"]


def test_provider_options_may_be_given_beside_the_names() -> None:
    made = ort_rknpu.InferenceSession(
        mixed(), providers=[PROVIDER, "CPUExecutionProvider"], provider_options=[{"soc": "rk3588"}, {}]
    )
    assert made.get_provider_options()[PROVIDER]["soc"] == "rk3588"
    with pytest.raises(OptionError, match="'soc' is required"):
        ort_rknpu.InferenceSession(mixed(), providers=[PROVIDER])


def test_every_way_to_run_gives_the_same() -> None:
    made = session(mixed(), count_overflow="1")
    feeds = feed()
    expected = made.run(None, feeds)
    assert len(expected) == 1
    assert [output.name for output in made.get_outputs()] == ["y"]
    assert np.array_equal(made.run(["y"], feeds)[0], expected[0])
    values = made.run_with_ort_values(None, {"x": onnxruntime.OrtValue.ortvalue_from_numpy(feeds["x"])})
    assert np.array_equal(values[0].numpy(), expected[0])
    binding = made.io_binding()
    binding.bind_cpu_input("x", feeds["x"])
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], expected[0])
    done = threading.Event()
    results: list[Any] = []

    def callback(outputs: Any, data: Any, error: str) -> None:
        results.extend([outputs, error])
        data.set()

    made.run_async(None, feeds, callback, done)
    assert done.wait(30)
    assert results[1] == ""
    assert len(results[0]) == 1
    assert np.array_equal(results[0][0], expected[0])


def test_a_dynamic_batch_runs_in_every_size() -> None:
    made = session(mixed("n"))
    fixed = session(mixed(3))
    assert made.get_inputs()[0].shape == ["n", 8, 8, 8]
    assert np.array_equal(made.run(None, feed(3))[0], fixed.run(None, feed(3))[0])
    assert made.run(None, feed(1))[0].shape == (1, 8, 8, 8)
    info = made.get_provider_graph_assignment_info()
    assert [found.ep_name for found in info] == [PROVIDER, "CPUExecutionProvider", PROVIDER]


def test_overflows_are_counted_over_runs_and_threads() -> None:
    made = session(mixed(), count_overflow="1")
    made.run(None, feed())
    assert made.overflows == {}
    hot = {"x": np.full((1, 8, 8, 8), 1e4, np.float32)}
    made.run(None, hot)
    once = made.overflows
    assert once
    assert next(iter(once)) == "r"
    threads = [threading.Thread(target=made.run, args=(None, hot)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.overflows == {name: 9 * count for name, count in once.items()}


def test_saturation_keeps_results_finite() -> None:
    hot = {"x": np.full((1, 8, 8, 8), 1e4, np.float32)}
    assert np.isnan(session(mixed()).run(None, hot)[0]).any()
    assert np.isfinite(session(mixed(), overflow="saturate").run(None, hot)[0]).all()


def test_profiles_name_the_partition_of_every_node(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    made = session(mixed(), options)
    made.run(None, feed())
    events = json.loads(Path(made.end_profiling()).read_text())
    nodes = [event for event in events if event.get("cat") == "Node"]
    assert {event["args"]["partition"] for event in nodes} == {"npu 0", "cpu 1", "npu 2"}
    assert {e["args"]["partition"] for e in nodes if e["args"].get("op_name") == "Sin"} == {"cpu 1"}


def test_session_options_of_the_caller_are_left_as_they_were() -> None:
    options = onnxruntime.SessionOptions()
    samples = [feed(seed=seed) for seed in range(4)]
    providers = [(PROVIDER, {"soc": "rk3588", "precision": "int8"})]
    ort_rknpu.InferenceSession(mixed(), options, providers=providers, calibration=samples)
    assert options.get_session_config_entry("session.disable_quant_qdq") == "0"


def test_int8_needs_calibration_data_and_leaves_cpu_nodes_in_float(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="calibration=FOLDER"):
        session(mixed(), precision="int8")
    for seed in range(4):
        np.save(tmp_path / f"{seed}.npy", feed(seed=seed)["x"])
    made = session(mixed(), precision="int8", calibration=str(tmp_path))
    exact = session(mixed(), numerics="float32").run(None, feed())[0]
    found = made.run(None, feed())[0]
    assert 0 < np.abs(found - exact).max() < 0.1


def test_claimed_groups_compile_to_what_the_session_computes() -> None:
    provider = RknpuExecutionProvider({"soc": "rk3588"})
    groups = provider.get_capability(mixed())
    assert [group.sub_graph.nodes for group in groups] == [(0, 1), (3,)]
    assert [group.sub_graph.meta_def.inputs for group in groups] == [("x",), ("s",)]
    assert [group.sub_graph.meta_def.outputs for group in groups] == [("r",), ("y",)]
    assert groups[0].reasons == {"conv": ("ConvRelu",), "relu": ("ConvRelu",)}
    first, last = provider.compile(mixed(), groups)
    feeds = feed()
    found = last.compute({"s": np.sin(first.compute(feeds)["r"])})["y"]
    assert half_ulps(session(mixed()).run(None, feeds)[0], found).max() <= 1


def test_a_partition_extracted_runs_alone_and_gives_the_same() -> None:
    assignment = assign(source("_models/vit"), ProviderOptions.parse({"soc": "rk3588"}))
    case = golden.load("_models/vit")
    for partition in assignment.result.partitions:
        inputs, outputs = assignment.boundary(partition.id)
        model = assignment.extract(partition.id)
        onnx.checker.check_model(model)
        assert [value.name for value in model.graph.input] == list(inputs)
        probe = Probe(assignment.proto, [*inputs, *outputs])
        values = probe.run(case.inputs, [name for name in (*inputs, *outputs) if name not in case.inputs])
        values.update(case.inputs)
        alone = Probe(model).run({name: values[name] for name in inputs}, outputs)
        for name in outputs:
            assert np.allclose(alone[name], values[name], atol=1e-5)
    with pytest.raises(OptionError, match="no partition 99; the model has"):
        assignment.extract(99)


def test_a_float16_model_keeps_its_types_and_is_rounded_per_op() -> None:
    model = mixed()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    feeds = {"x": feed()["x"].astype(np.float16)}
    found = session(model, cpu_numerics="fp16").run(None, feeds)[0]
    assert found.dtype == np.float16
    wide = session(mixed(), cpu_numerics="fp16").run(None, {"x": feeds["x"].astype(np.float32)})[0]
    assert np.abs(found - wide).max() < 2e-2


@pytest.mark.parametrize("given", [{}, {"numerics": "float32"}, {"precision": "int8"}])
def test_weights_beside_the_file_are_found(tmp_path: Path, given: dict[str, str]) -> None:
    onnx.save(
        mixed(),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        size_threshold=0,
        location="m.data",
        all_tensors_to_one_file=True,
    )
    providers = [(PROVIDER, {"soc": "rk3588", **given})]
    samples = [feed(seed=seed) for seed in range(4)]
    beside = ort_rknpu.InferenceSession(tmp_path / "m.onnx", providers=providers, calibration=samples)
    inside = ort_rknpu.InferenceSession(mixed(), providers=providers, calibration=samples)
    assert np.array_equal(beside.run(None, feed())[0], inside.run(None, feed())[0])


def test_a_dump_with_initializers_among_its_inputs_runs() -> None:
    path = golden.load("_models/yolo_like").fused
    dump = onnx.load(path)
    assert {tensor.name for tensor in dump.graph.initializer} & {value.name for value in dump.graph.input}
    assert [value.name for value in session(path).get_inputs()] == ["x"]


def test_control_flow_and_local_functions_do_not_stop_it() -> None:
    body = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    model = mixed()
    model.graph.node[3].input[0] = "d"
    model.graph.node.insert(3, helper.make_node("Twice", ["s"], ["d"], "twice", domain="local"))
    model.functions.append(body)
    model.opset_import.append(helper.make_opsetid("local", 1))
    found = session(model).run(None, feed())[0]
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed())[0]
    assert np.abs(found - expected).max() < 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_random_feeds_reach_the_model(seed: int) -> None:
    made = session(source("_models/yolo_like"))
    feeds = random_feeds(made.get_inputs(), seed)
    assert np.isfinite(made.run(None, feeds)[0]).all()
