"""``InferenceSession``: onnxruntime's own, for models of Rockchip's toolkit and with the emulated provider."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import onnx
import onnxruntime

from custom_ops import python_form, register_custom_ops, runtime
from custom_ops.loading import external_tensors, read_model
from custom_ops.rewrite import has_ex_nodes, rewrite
from ort_rknpu.session.options import PROVIDER, ProviderOptions

Provider = str | tuple[str, Mapping[str, Any]]
T = TypeVar("T")
_FOLDER = "session.model_external_initializers_file_folder_path"


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
def data_folder(options: onnxruntime.SessionOptions, folder: Path | None) -> Iterator[None]:
    """Sessions made from bytes with ``options`` meanwhile look for external data in ``folder``."""
    if folder is None:
        yield
        return
    try:
        before = options.get_session_config_entry(_FOLDER)
    except RuntimeError:
        before = ""
    options.add_session_config_entry(_FOLDER, str(folder))
    try:
        yield
    finally:
        options.add_session_config_entry(_FOLDER, before)


class InferenceSession(onnxruntime.InferenceSession):
    """``onnxruntime.InferenceSession`` that runs the toolkit's dumps and knows ``RknpuExecutionProvider``.

    Takes the same arguments, and a ModelProto too. Without a provider entry ex nodes run as native operators. An
    exception inside a Python op (``ops="python"``) reaches the caller of ``run`` as ``OpRuntimeError``.

    Raises:
        ModelError, OpError, UnknownOpError: the model, or one of its nodes, as ``ort_rknpu.prepare``.
        OptionError: an unknown option of the provider.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | onnx.ModelProto,
        sess_options: onnxruntime.SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        options, providers, provider_options = split_providers(providers, provider_options)
        ops = "native" if options is None else options.ops
        source, folder = path_or_bytes, None
        if not _is_ort_format(path_or_bytes):
            model, folder = read_model(path_or_bytes)
            if has_ex_nodes(model):
                if isinstance(path_or_bytes, onnx.ModelProto):
                    model = onnx.ModelProto.FromString(model.SerializeToString())
                model = rewrite(model, "python" if ops == "python" else "native", raises=True)
                source = model.SerializeToString()
                folder = folder if external_tensors(model) else None
            elif isinstance(path_or_bytes, onnx.ModelProto):
                source = model.SerializeToString()
        if sess_options is None:
            sess_options = onnxruntime.SessionOptions()
        if ops == "python":
            register_custom_ops(sess_options)
        with data_folder(sess_options, folder if isinstance(source, bytes) else None):
            super().__init__(source, sess_options, providers, provider_options, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As ``onnxruntime.InferenceSession.run``. OpRuntimeError where a Python op failed."""
        return _raising(super().run, *args, **kwargs)

    def run_with_ort_values(self, *args: Any, **kwargs: Any) -> Any:
        """As ``onnxruntime.InferenceSession.run_with_ort_values``. OpRuntimeError where a Python op failed."""
        return _raising(super().run_with_ort_values, *args, **kwargs)

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
            callback(results, data, error if cause is None else str(cause))

        super().run_async(output_names, input_feed, translated, user_data, run_options)


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
