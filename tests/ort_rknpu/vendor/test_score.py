"""The definitions of the placement score."""

from ort_rknpu.vendor.records import Layer, Record
from ort_rknpu.vendor.score import PredictedNode, Prediction, by_target, score_run, tally


def record(nodes: dict[str, str], cpu: tuple[str, ...] = (), soc: str = "rk3588", ok: bool = True) -> Record:
    layers = (*(Layer(op, "cpu", (), (), op) for op in cpu), Layer("Conv", "npu", (), (), "c"))
    return Record("m", soc, "fp16", "2.3.2", ok, layers if ok else (), (), nodes if ok else {})


def prediction(verdicts: dict[str, str], cpu: tuple[str, ...] = (), build_ok: bool = True) -> Prediction:
    nodes = {name: PredictedNode("Op", verdict) for name, verdict in verdicts.items()}
    return Prediction(nodes, (*((op, "cpu") for op in cpu), ("Conv", "npu")), build_ok)


def test_cpu_split_and_unsupported_count_alike_as_leaving_the_npu() -> None:
    recorded = record({"a": "cpu", "b": "split", "c": "cpu", "d": "npu"})
    score = score_run(recorded, prediction({"a": "split", "b": "unsupported", "c": "cpu", "d": "folded"}))
    assert (score.true_positive, score.true_negative, score.misses) == (3, 1, ())


def test_nodes_folded_in_the_record_are_not_scored() -> None:
    score = score_run(record({"a": "folded"}), prediction({"a": "cpu"}))
    assert tally([score]).nodes == 0


def test_an_overflow_counts_as_npu() -> None:
    overflow = Prediction({"a": PredictedNode("Conv", "unsupported", overflow=True)}, (), True)
    assert score_run(record({"a": "npu"}), overflow).true_negative == 1
    assert score_run(record({"a": "cpu"}), overflow).false_negative == 1


def test_a_node_without_a_prediction_counts_as_staying() -> None:
    score = score_run(record({"a": "cpu", "b": "npu"}), prediction({}))
    assert (score.false_negative, score.true_negative) == (1, 1)


def test_cpu_rows_compare_as_a_multiset_of_op_types() -> None:
    recorded = record({}, cpu=("Reshape", "Softmax", "Reshape"))
    assert score_run(recorded, prediction({}, cpu=("Softmax", "Reshape", "Reshape"))).rows_agree
    wrong = score_run(recorded, prediction({}, cpu=("Softmax", "Reshape", "Exp")))
    assert (wrong.cpu_rows_missing, wrong.cpu_rows_extra) == ({"Reshape": 1}, {"Exp": 1})


def test_a_refused_model_is_scored_on_its_build_verdict_alone() -> None:
    scores = [
        score_run(record({}, ok=False), prediction({"a": "cpu"}, cpu=("Exp",), build_ok=False)),
        score_run(record({}, ok=False), prediction({"a": "cpu"})),
    ]
    total = tally(scores)
    assert (total.runs, total.built, total.nodes, total.build_share) == (2, 0, 0, 0.5)


def test_figures_are_those_of_the_confusion_counts() -> None:
    recorded = record({"a": "cpu", "b": "cpu", "c": "npu", "d": "npu", "e": "npu"})
    total = tally([score_run(recorded, prediction({"a": "cpu", "b": "npu", "c": "cpu", "d": "npu", "e": "npu"}))])
    assert (total.accuracy, total.precision, total.recall, total.f1) == (3 / 5, 1 / 2, 1 / 2, 1 / 2)
    assert total.every_node_share == 0
    assert total.misses == {("Op", "cpu", "npu"): 1, ("Op", "npu", "cpu"): 1}


def test_nothing_to_find_and_nothing_found_is_a_perfect_score() -> None:
    total = tally([score_run(record({"a": "npu"}), prediction({"a": "npu"}))])
    assert (total.precision, total.recall, total.f1, total.every_node_share) == (1, 1, 1, 1)


def test_targets_are_tallied_apart() -> None:
    socs = ("rk3588", "rk3566", "rk3588")
    scores = [score_run(record({"a": "npu"}, soc=soc), prediction({"a": "npu"})) for soc in socs]
    assert {name: entry.runs for name, entry in by_target(scores).items()} == {"rk3566/fp16": 1, "rk3588/fp16": 2}
