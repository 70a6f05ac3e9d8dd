"""``InferenceSession``: onnxruntime's own, for models of Rockchip's toolkit and with the emulated provider."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import onnx
import onnxruntime

from custom_ops import python_form, register_custom_ops, runtime
from custom_ops.loading import external_size, external_tensors, read_model
from custom_ops.rewrite import has_ex_nodes, rewrite
from ort_rknpu.errors import OptionError
from ort_rknpu.session.assignment import Assignment, assign
from ort_rknpu.session.calibration import Calibration, CheckedReader, calibration_samples
from ort_rknpu.session.feeds import input_infos
from ort_rknpu.session.half import OVERFLOW_OUTPUT
from ort_rknpu.session.numerics import NpuModel, npu_model
from ort_rknpu.session.options import PROVIDER, ProviderOptions
from ort_rknpu.session.profile import label_profile
from ort_rknpu.session.provider import require_claimed

Provider = str | tuple[str, Mapping[str, Any]]
T = TypeVar("T")
_FOLDER = "session.model_external_initializers_file_folder_path"
_UNSET = {_FOLDER: "", "session.disable_quant_qdq": "0"}
"""Session configuration that a model may need, with what it is where nobody set it."""


def split_providers(
    providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
) -> tuple[ProviderOptions | None, list[Provider] | None, list[Mapping[str, Any]] | None]:
    """Our provider's checked options, and the providers and options left for ONNX Runtime.

    Raises:
        OptionError: an unknown key or value, or ``soc`` is missing.
    """
    if providers is None:
        return None, None, None if provider_options is None else list(provider_options)
    found: ProviderOptions | None = None
    others: list[Provider] = []
    other_options: list[Mapping[str, Any]] = []
    beside = provider_options or [{}] * len(providers)
    for entry, extra in zip(providers, beside):
        name, options = (entry, extra) if isinstance(entry, str) else (entry[0], {**entry[1], **extra})
        if name == PROVIDER:
            found = ProviderOptions.parse(options)
        else:
            others.append(entry)
            other_options.append(extra)
    if not others:
        others, other_options = ["CPUExecutionProvider"], [{}]
    return found, others, other_options if provider_options else None


@contextmanager
def session_entries(options: onnxruntime.SessionOptions, entries: Mapping[str, str]) -> Iterator[None]:
    """``options`` with some configuration entries set meanwhile: the options belong to the caller."""
    before = {}
    for key, value in entries.items():
        try:
            before[key] = options.get_session_config_entry(key)
        except RuntimeError:
            before[key] = _UNSET[key]
        options.add_session_config_entry(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            options.add_session_config_entry(key, value)


@dataclass(frozen=True)
class AssignedNode:
    """A node of the user's model, as in ONNX Runtime's graph assignment information."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class AssignedSubgraph:
    """Nodes that one provider runs in one go; ``partition`` is their number in ``check``'s list of partitions."""

    ep_name: str
    partition: int
    nodes: tuple[AssignedNode, ...]

    def get_nodes(self) -> list[AssignedNode]:
        """The nodes, in the model's order."""
        return list(self.nodes)


class InferenceSession(onnxruntime.InferenceSession):
    """``onnxruntime.InferenceSession`` that runs the toolkit's dumps and knows ``RknpuExecutionProvider``.

    Takes the same arguments, and a ModelProto too. Without a provider entry ex nodes run as native operators. An
    exception inside a Python op (``ops="python"``) reaches the caller of ``run`` as ``OpRuntimeError``.

    With the provider, nodes are claimed as ``check`` says and the model runs with the NPU's numerics, in one native
    session; partitions are kept as metadata (:attr:`assignment`, profiles, graph assignment information). Providers
    beside it take the rest, in float32.

    Raises:
        ModelError, OpError, UnknownOpError: the model, or one of its nodes, as ``ort_rknpu.prepare``.
        OptionError: an unknown option of the provider.
        PlacementError: with ``fallback="error"``, where a node is not claimed.
        CalibrationError: int8 numerics without calibration data, or data that does not fit.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | onnx.ModelProto,
        sess_options: onnxruntime.SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        calibration: Calibration | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the session.

        Args:
            path_or_bytes, sess_options, providers, provider_options: as in ONNX Runtime.
            calibration: for int8 numerics: feeds, one mapping from input names to arrays a sample, or a folder.
            kwargs: passed on.
        """
        self._arguments = {"path_or_bytes": path_or_bytes, "sess_options": sess_options, **kwargs}
        self._calibration = calibration
        self._npu: NpuModel | None = None
        self._count_lock = threading.Lock()
        self._counts: list[int] = []
        options, providers, provider_options = split_providers(providers, provider_options)
        self._options = options
        if sess_options is None:
            sess_options = onnxruntime.SessionOptions()
        self._python = options is not None and options.ops == "python"
        source, entries = self._source(path_or_bytes, options)
        if self._python:
            register_custom_ops(sess_options)
        disabled = set(kwargs.pop("disabled_optimizers", None) or ())
        if self._npu is not None:
            disabled.update(self._npu.disabled_optimizers)
        with session_entries(sess_options, entries):
            super().__init__(
                source, sess_options, providers, provider_options, **kwargs, disabled_optimizers=disabled or None
            )

    def _source(self, given: Any, options: ProviderOptions | None) -> tuple[Any, dict[str, str]]:
        """What ONNX Runtime loads, and the configuration it needs for that."""
        if _is_ort_format(given):
            if options is not None and options.numerics == "npu":
                raise OptionError("NPU numerics need an ONNX model, not one in ORT format")
            return given, {}
        model, folder = read_model(given)
        # What prepare(ops="python") made needs them too.
        self._python |= any(entry.domain == python_form.DOMAIN for entry in model.opset_import)
        if options is not None and options.fallback == "error":
            require_claimed(self._assigned, options)
        entries: dict[str, str] = {}
        if options is not None and options.numerics == "npu":
            assignment = self._assigned
            self._npu = npu_model(
                assignment.proto, assignment.groups, assignment.values, options, self._reader(options), folder
            )
            model = self._npu.model
            entries.update(self._npu.session_entries)
        elif has_ex_nodes(model):
            if isinstance(given, onnx.ModelProto):
                model = onnx.ModelProto.FromString(model.SerializeToString())
            python = options is not None and options.ops == "python"
            model = rewrite(model, "python" if python else "native", raises=True)
        elif not isinstance(given, onnx.ModelProto):
            return given, {}
        tensors = external_tensors(model)
        if folder is not None and tensors:
            external_size(tensors, folder)  # says what is missing
            entries[_FOLDER] = str(folder)
        return model.SerializeToString(), entries

    def _reader(self, options: ProviderOptions) -> Callable[[], CheckedReader] | None:
        data: Calibration | None = self._calibration if self._calibration is not None else options.calibration or None
        if data is None:
            return None

        inputs = input_infos(self._assigned.proto)
        return lambda: CheckedReader(calibration_samples(data, inputs), inputs)

    @cached_property
    def _assigned(self) -> Assignment:
        assert self._options is not None
        return assign(self._arguments["path_or_bytes"], self._options)

    @property
    def assignment(self) -> Assignment | None:
        """What the provider claims, and its partitions; None where the provider is not in the list."""
        return None if self._options is None else self._assigned

    @property
    def overflows(self) -> dict[str, int]:
        """Values that overflowed so far, by tensor, where there were any.

        With ``count_overflow="1"``, over all runs but those under IOBinding. Activations and other ops that cannot make
        a finite value infinite are left out.
        """
        with self._count_lock:
            counted = dict(zip(self._npu.counted if self._npu else (), self._counts))
        return {name: count for name, count in counted.items() if count}

    def get_providers(self) -> list[str]:
        """As ``onnxruntime.InferenceSession.get_providers``, ours first where it was asked for."""
        return [*([PROVIDER] if self._options is not None else []), *super().get_providers()]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """As ``onnxruntime.InferenceSession.get_provider_options``."""
        ours = {} if self._options is None else {PROVIDER: self._options.to_dict()}
        return {**ours, **super().get_provider_options()}

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """As ``onnxruntime.InferenceSession.set_providers``: the session is made anew, claims included."""
        self.__dict__.pop("_assigned", None)
        arguments = {**self._arguments, "calibration": self._calibration}
        self.__init__(providers=providers, provider_options=provider_options, **arguments)  # type: ignore[misc]

    def get_outputs(self) -> list[Any]:
        """As ``onnxruntime.InferenceSession.get_outputs``."""
        return [output for output in super().get_outputs() if output.name != OVERFLOW_OUTPUT]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """With our provider one entry a partition, in execution order, else as in ONNX Runtime."""
        assignment = self.assignment
        if assignment is None:
            return list(super().get_provider_graph_assignment_info())
        rest = super().get_providers()[0]
        result = []
        for partition in assignment.result.partitions:
            found = [n for i, n in assignment.nodes.items() if assignment.partition_of.get(i) == partition.id]
            nodes = tuple(AssignedNode(node.name, node.domain, node.op_type) for node in found)
            result.append(AssignedSubgraph(PROVIDER if partition.device == "npu" else rest, partition.id, nodes))
        return result

    def end_profiling(self) -> str:
        """As ``onnxruntime.InferenceSession.end_profiling``; events of nodes say their ``partition`` too."""
        path = super().end_profiling()
        if path and self._options is not None:
            assignment = self._assigned
            label_profile(path, assignment.labels(assignment.proto if self._npu is None else self._npu.model))
        return path

    @property
    def _counting(self) -> bool:
        asked = self._options is not None and self._options.count_overflow == "1"
        return asked and self._npu is not None and bool(self._npu.counted)

    def _names(self, names: Sequence[str] | None) -> list[str]:
        """The outputs to ask ONNX Runtime for; the count comes last."""
        asked = list(names) if names else [output.name for output in self.get_outputs()]
        return [*asked, OVERFLOW_OUTPUT] if self._counting else asked

    def _taken(self, results: Any) -> Any:
        """``results`` without the count, which is added to what was counted before."""
        if not self._counting:
            return results
        *wanted, counts = results
        counts = counts.numpy() if hasattr(counts, "numpy") else counts
        with self._count_lock:
            before = self._counts or [0] * len(counts)
            self._counts = [a + int(b) for a, b in zip(before, counts)]
        return wanted

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> Any:
        """As ``onnxruntime.InferenceSession.run``. OpRuntimeError where a Python op failed."""
        return self._taken(_raising(super().run, self._names(output_names), input_feed, run_options))

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> Any:
        """As ``onnxruntime.InferenceSession.run_with_ort_values``. OpRuntimeError where a Python op failed."""
        names = self._names(output_names)
        return self._taken(_raising(super().run_with_ort_values, names, input_dict_ort_values, run_options))

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> None:
        """As ``onnxruntime.InferenceSession.run_with_iobinding``. OpRuntimeError where a Python op failed."""
        _raising(super().run_with_iobinding, *args, **kwargs)

    def run_with_ortvaluevector(self, *args: Any, **kwargs: Any) -> None:
        """As ``onnxruntime.InferenceSession.run_with_ortvaluevector``. OpRuntimeError where a Python op failed."""
        _raising(super().run_with_ortvaluevector, *args, **kwargs)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: onnxruntime.RunOptions | None = None,
    ) -> None:
        """As ``onnxruntime.InferenceSession.run_async``. ``callback`` gets a Python op's own error as text."""

        def translated(results: Any, data: Any, error: str) -> None:
            cause = _op_error(error)
            taken = self._taken(results) if not error else results
            callback(taken, data, error if cause is None else str(cause))

        super().run_async(self._names(output_names), input_feed, translated, user_data, run_options)


def _is_ort_format(source: Any) -> bool:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source).endswith(".ort")
    return isinstance(source, bytes) and source[4:8] == b"ORTM"


def _op_error(message: str) -> Exception | None:
    number = python_form.error_number(message)
    return None if number is None else runtime.take_error(number)


def _raising(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        cause = _op_error(str(error))
        if cause is None:
            raise
        raise cause from cause.__cause__
