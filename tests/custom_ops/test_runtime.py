"""Python ops in onnxruntime's own session: registration in any order, errors that never end the process.

Registration can't be undone, so every order runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRELUDE = """
import threading
import numpy as np
import onnx
import onnxruntime as ort
import custom_ops
from onnxruntime_extensions import get_library_path, onnx_op, PyCustomOpDef

CPU = ["CPUExecutionProvider"]
X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(1, 8, 3)

def model(body, shape="1,8,3", out="1,8,3", **imports):
    graph = onnx.parser.parse_graph(f"g (float[{shape}] x) => (float[{out}] y) {{ {body} }}")
    opsets = [onnx.helper.make_opsetid(d.replace("_", "."), v) for d, v in {"": 19, **imports}.items()]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)

def session(m, options, **kwargs):
    return ort.InferenceSession(m.SerializeToString(), options, providers=CPU)

def prepared(body="y = exSwish<beta = 0.5>(x)", **kwargs):
    return custom_ops.prepare(model(body, **kwargs), ops="python")

def expect(s, x=X, beta=0.5):
    np.testing.assert_allclose(s.run(None, {"x": x})[0], x / (1 + np.exp(-beta * x)), atol=1e-5)

def quiet():
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options
"""


def process(script: str) -> str:
    """Runs ``script`` behind the prelude in a fresh interpreter; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_before_and_after_other_sessions_and_repeatedly() -> None:
    process(
        """
        plain = session(custom_ops.prepare(model("y = exSwish<beta = 0.5>(x)")), quiet())
        first = quiet()
        for _ in range(3):
            custom_ops.register_custom_ops(first)
        one = session(prepared(), first)
        second = quiet()
        custom_ops.register_custom_ops(second)
        two = session(prepared(), second)
        custom_ops.register_custom_ops(first)
        three = session(prepared(), first)
        for s in (plain, one, two, three, one):
            expect(s)
        """
    )


def test_the_extensions_library_may_follow_the_definition_of_the_ops() -> None:
    process(
        """
        m = prepared()
        options = quiet()
        options.register_custom_ops_library(get_library_path())
        custom_ops.register_custom_ops(options)
        expect(session(m, options))
        """
    )


def test_an_order_that_cannot_be_served_says_which_call_to_move() -> None:
    out = process(
        """
        options = quiet()
        options.register_custom_ops_library(get_library_path())
        try:
            custom_ops.register_custom_ops(options)
        except custom_ops.errors.RegistrationError as error:
            print(error)
        other = quiet()
        custom_ops.register_custom_ops(other)
        expect(session(prepared(), other))
        lower = model("s = Cast<to = 8>(x) u = ai.onnx.contrib.StringUpper(s) y = Cast<to = 1>(u)", ai_onnx_contrib=1)
        print(session(lower, options).run(None, {"x": X})[0].shape)
        """
    )
    assert "move the call of ort_rknpu.register_custom_ops(options) before" in out
    assert "(1, 8, 3)" in out


def test_registering_leaves_the_options_as_they_were() -> None:
    out = process(
        """
        import os, tempfile
        os.chdir(tempfile.mkdtemp())
        options = ort.SessionOptions()
        options.enable_profiling, options.optimized_model_filepath, options.log_severity_level = True, "o.onnx", 3
        custom_ops.register_custom_ops(options)
        print(os.listdir("."), options.enable_profiling, options.optimized_model_filepath, options.log_severity_level)
        """
    )
    assert out.split("\n")[0] == "[] True o.onnx 3"


def test_beside_python_ops_of_other_libraries_defined_before_and_after() -> None:
    process(
        """
        @onnx_op(op_type="Double", inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float])
        def double(x):
            return x * 2

        options = quiet()
        custom_ops.register_custom_ops(options)
        mine = session(prepared(), options)
        theirs = session(model("y = ai.onnx.contrib.Double(x)", ai_onnx_contrib=1), options)
        expect(mine)

        for name in ("ai.onnx.contrib::Triple", "theirs::Triple"):
            @onnx_op(op_type=name, inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float])
            def triple(x):
                return x * 3

        for _ in range(20):
            expect(mine)
            np.testing.assert_allclose(theirs.run(None, {"x": X})[0], X * 2)
        later = quiet()
        custom_ops.register_custom_ops(later)
        np.testing.assert_allclose(
            session(model("y = theirs.Triple(x)", theirs=1), later).run(None, {"x": X})[0], X * 3
        )
        expect(session(prepared(), later))
        """
    )


def test_a_hook_installed_by_another_library_afterwards_still_serves_the_ops() -> None:
    process(
        """
        from onnxruntime_extensions._ocos import _on_pyop_invocation
        options = quiet()
        custom_ops.register_custom_ops(options)
        s = session(prepared(), options)
        PyCustomOpDef.install_hooker(_on_pyop_invocation)
        expect(s)
        """
    )


def test_concurrent_registration_and_runs() -> None:
    process(
        """
        failures = []

        def work(i):
            try:
                for _ in range(3):
                    options = quiet()
                    custom_ops.register_custom_ops(options)
                    s = session(prepared(), options)
                    for _ in range(10):
                        expect(s)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not failures, failures
        """
    )


def test_operators_of_one_signature_run_unprepared_in_the_default_domain() -> None:
    process(
        """
        options = quiet()
        custom_ops.register_custom_ops(options)
        for name in ("exMish", "exGelu", "exHardSwish", "exSwooshR", "exSwooshL"):
            raw = model(f"y = {name}(x)")
            want = session(custom_ops.prepare(raw), quiet()).run(None, {"x": X})[0]
            np.testing.assert_allclose(session(raw, options).run(None, {"x": X})[0], want, atol=1e-5)
        """
    )


@pytest.mark.parametrize(
    "body",
    [
        "y = exSwish(x)",
        "y = exSwish<beta = 1.702>(x)",
        "y = exSoftmax13(x)",
        'y = exNorm<mode = "layer">(x, x, x)',
        "y = exSDPAttention(x, x, x)",
        "y = exMatMul(x, x)",
        "m = Cast<to = 9>(x) y = exSoftmaxMask<axis = 1, mask_value = 1>(x, m)",
    ],
)
def test_every_other_operator_in_the_default_domain_gets_an_error_that_names_prepare(body: str) -> None:
    out = process(
        f"""
        options = quiet()
        custom_ops.register_custom_ops(options)
        try:
            session(model('''{body}'''), options)
        except Exception as error:
            print(error)
        """
    )
    assert "ort_rknpu.prepare(model)" in out


def test_a_failing_op_gives_nan_and_last_error_and_the_next_run_is_right() -> None:
    out = process(
        """
        options = quiet()
        custom_ops.register_custom_ops(options)
        m = prepared("y = exGlu<axis = 1>(x)", shape="1,n,3", out="1,m,3")
        m.graph.node[0].name = "glu"
        s = session(m, options)
        assert custom_ops.last_error() is None
        bad = s.run(None, {"x": X[:, :7]})[0]
        assert bad.size and np.isnan(bad).all(), bad
        print(repr(custom_ops.last_error()), "|", repr(custom_ops.last_error().__cause__))
        good = s.run(None, {"x": X})[0]
        np.testing.assert_allclose(good, X[:, :4] / (1 + np.exp(-X[:, 4:])), atol=1e-6)
        """
    )
    assert "OpRuntimeError(\"node 'y' (exGlu): input X [1,7,3] has an odd size along axis 1\")" in out
    assert "| OpError(" in out


def test_failing_and_good_runs_at_once_from_eight_threads() -> None:
    process(
        """
        options = quiet()
        custom_ops.register_custom_ops(options)
        s = session(prepared("y = exGlu<axis = 1>(x)", shape="1,n,3", out="1,m,3"), options)
        want = X[:, :4] / (1 + np.exp(-X[:, 4:]))
        failures = []

        def work(i):
            for _ in range(25):
                y = s.run(None, {"x": X[:, :7] if i % 2 else X})[0]
                if not (np.isnan(y).all() if i % 2 else np.allclose(y, want, atol=1e-6)):
                    failures.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not failures, failures
        """
    )
