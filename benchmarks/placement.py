"""Agreement of ``check`` with recordings of the vendor's compiler, per target, over corpora and toolkit versions.

    python -m benchmarks.placement                                  # every corpus shipped with the tests
    python -m benchmarks.placement --corpus B --target rk3588/fp16 --misses
    python -m benchmarks.placement --recordings FOLDER              # laid out like tests/data/recordings

Columns: runs; nodes scored; accuracy, precision, recall and F1 of "leaves the NPU" (cpu, split, unsupported; overflow
verdicts count as npu); share of built runs with every node right and with exactly the right CPU rows; share of runs
whose build verdict is right. ``mean`` weighs every target alike, ``pool`` every node.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import onnx

from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target
from ort_rknpu.vendor.predict import predict
from ort_rknpu.vendor.records import Record, read_records
from ort_rknpu.vendor.score import PredictedNode, Prediction, RunScore, Tally, by_target, score_run, tally

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "data" / "recordings"

Predictor = Callable[[bytes, Sequence[Record]], list[Prediction]]


def predict_everything_on_npu(model: bytes, records: Sequence[Record]) -> list[Prediction]:
    """The baseline that any prediction has to beat: every node on the NPU, every model builds."""
    nodes = {node.name: PredictedNode(node.op_type, "npu") for node in onnx.load_from_string(model).graph.node}
    return [Prediction(nodes, (), True)] * len(records)


def predict_compiled(model: bytes, records: Sequence[Record]) -> list[Prediction]:
    """What ``compile_model`` predicts; the model is loaded once for all its targets."""
    return predict(Model.load(model), [get_target(r.soc, r.precision, r.toolkit) for r in records])


PREDICTORS: dict[str, Predictor] = {"compiled": predict_compiled, "npu": predict_everything_on_npu}


def read_models(folder: Path, corpus: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every model of a corpus: a folder of ``.onnx`` files or a ``.tar.xz`` of them."""
    archive = folder / f"{corpus}.tar.xz"
    if not archive.exists():
        for path in sorted((folder / corpus).glob("*.onnx")):
            yield path.stem, path.read_bytes()
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None and member.name.endswith(".onnx"):
                yield Path(member.name).stem, file.read()


def read_corpus(recordings: Path, toolkit: str, corpus: str) -> dict[str, list[Record]]:
    """The records of one corpus by model name; empty where that toolkit version has none."""
    result: dict[str, list[Record]] = defaultdict(list)
    for suffix in (".jsonl.gz", ".jsonl"):
        path = recordings / toolkit / f"{corpus}{suffix}"
        if path.exists():
            for record in read_records(path):
                result[record.model].append(record)
            break
    return dict(result)


def score_model(predictor: str, job: tuple[bytes, Sequence[Record]]) -> list[RunScore]:
    """Scores one model on all its recorded targets."""
    model, records = job
    predictions = PREDICTORS[predictor](model, records)
    return [score_run(record, prediction) for record, prediction in zip(records, predictions, strict=True)]


def select(records: Iterable[Record], targets: Sequence[str]) -> list[Record]:
    """The records whose ``soc/precision`` is asked for (all where nothing is)."""
    return [r for r in records if not targets or f"{r.soc}/{r.precision}" in targets or r.soc in targets]


def score_corpus(
    recordings: Path,
    toolkit: str,
    corpus: str,
    *,
    predictor: str,
    targets: Sequence[str] = (),
    models: str = "*",
    processes: int = 1,
) -> list[RunScore]:
    """Scores a corpus, in order of model; one pool of ``processes`` workers, or none where that is 1."""
    by_model = read_corpus(recordings, toolkit, corpus)
    jobs = []
    for name, data in read_models(recordings / "models", corpus):
        records = select(by_model.get(name, ()), targets)
        if records and fnmatch.fnmatch(name, models):
            jobs.append((data, records))
    work = partial(score_model, predictor)
    if processes == 1:
        results = list(map(work, jobs))
    else:
        with multiprocessing.Pool(processes) as pool:
            results = pool.map(work, jobs, chunksize=4)
    return [score for scores in results for score in scores]


TITLES = ("acc", "prec", "rec", "F1", "nodes=", "rows=", "build")
HEADER = f"{'target':14}{'runs':>6}{'nodes':>7}" + "".join(f"{title:>8}" for title in TITLES)
COLUMNS = ("accuracy", "precision", "recall", "f1", "every_node_share", "rows_share", "build_share")


def row(name: str, runs: int, nodes: int, figures: Iterable[float]) -> str:
    """One line of the table."""
    return f"{name:14}{runs:6}{nodes:7}" + "".join(f"{figure:8.4f}" for figure in figures)


def table(scores: Sequence[RunScore]) -> Iterator[str]:
    """Per target, mean over targets, pool."""
    targets = by_target(scores)
    total = tally(scores)
    yield HEADER
    for name, entry in targets.items():
        yield row(name, entry.runs, entry.nodes, (getattr(entry, column) for column in COLUMNS))
    means = (sum(getattr(entry, column) for entry in targets.values()) / len(targets) for column in COLUMNS)
    yield row("mean", total.runs, total.nodes, means)
    yield row("pool", total.runs, total.nodes, (getattr(total, column) for column in COLUMNS))


def worst(entry: Tally, count: int) -> Iterator[str]:
    """The op types with the most nodes on the wrong side."""
    for (op_type, recorded, predicted), number in entry.misses.most_common(count):
        yield f"  {number:5} {op_type}: recorded {recorded}, predicted {predicted}"


def misses(scores: Sequence[RunScore]) -> Iterator[str]:
    """Per model: build verdicts, nodes and CPU rows that differ, alike targets on one line."""
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for score in scores:
        record, prediction = score.record, score.prediction
        where = f"{record.soc}/{record.precision}"
        if not score.build_agrees:
            text = f"recorded error: {record.stage} {record.error}" if not record.ok else "recorded ok"
            lines[record.model, f"build: {text}; predicted {prediction.build_reasons or 'ok'}"].append(where)
        for miss in score.misses:
            node = miss.predicted
            text = f"{node.op_type} {miss.name}: {miss.recorded}, not {node.verdict} as {'+'.join(node.compiled_as)}"
            lines[record.model, text + (f" ({'; '.join(node.clauses)})" if node.clauses else "")].append(where)
        if not score.rows_agree:
            differing = Counter({f"-{op}": n for op, n in score.cpu_rows_missing.items()})
            differing.update({f"+{op}": n for op, n in score.cpu_rows_extra.items()})
            text = " ".join(f"{op}x{number}" for op, number in sorted(differing.items()))
            lines[record.model, f"CPU rows (- missing, + too many): {text}"].append(where)
    model = ""
    for (name, text), where_all in lines.items():
        if name != model:
            yield name
            model = name
        yield f"  [{','.join(where_all)}] {text}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the scores asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="folder of recordings and models")
    parser.add_argument("--toolkit", action="append", help="toolkit version, repeatable (default: all recorded)")
    parser.add_argument("--corpus", action="append", help="corpus name, repeatable (default: all recorded)")
    parser.add_argument("--target", action="append", default=[], help="soc or soc/precision, repeatable")
    parser.add_argument("--models", default="*", help="pattern of model names")
    parser.add_argument("--predictor", choices=sorted(PREDICTORS), default=next(iter(PREDICTORS)))
    parser.add_argument("--misses", action="store_true", help="list what differs, per model")
    parser.add_argument("--worst", type=int, default=10, help="how many op types to list (default 10)")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    versions = options.toolkit or sorted(p.name for p in options.recordings.iterdir() if p.name[0].isdigit())
    found = False
    for version in versions:
        folder = options.recordings / version
        corpora = options.corpus or sorted(p.name.split(".jsonl")[0] for p in folder.glob("*.jsonl*"))
        everything: list[RunScore] = []
        for corpus in corpora:
            scores = score_corpus(
                options.recordings,
                version,
                corpus,
                predictor=options.predictor,
                targets=options.target,
                models=options.models,
                processes=options.processes,
            )
            if not scores:
                continue
            found = True
            everything += scores
            print(f"\n{version} {corpus}", *table(scores), *worst(tally(scores), options.worst), sep="\n")
            if options.misses:
                print(*misses(scores), sep="\n")
        if len(corpora) > 1 and everything:
            print(f"\n{version} {' + '.join(corpora)}", *table(everything), sep="\n")
    if not found:
        print("no recording matches", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
