"""How fast the HTML report opens and moves in headless Chromium, for growing networks.

    python -m benchmarks.page

Columns: nodes; size of the page; seconds from navigation until the page is ready, and as a ratio to the smallest
network; median and worst time of a frame while the graph is dragged.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from onnx import TensorProto, helper

from ort_rknpu.check import check
from tests.ort_rknpu.present.browser import chromium

SIZES = (100, 300, 1000, 2000)

_DRAG = """
const done = arguments[0];
const graph = document.querySelector(".graph svg");
const box = graph.getBoundingClientRect();
const send = (type, y) => graph.dispatchEvent(new PointerEvent(type, {
  pointerId: 1, clientX: box.left + 200, clientY: box.top + y, bubbles: true }));
const times = [];
let last = performance.now(), step = 0;
send("pointerdown", 400);
requestAnimationFrame(function frame(now) {
  times.push(now - last);
  last = now;
  send("pointermove", 400 - 7 * step);
  step += 1;
  if (step < 40) requestAnimationFrame(frame);
  else { send("pointerup", 0); done(times.slice(1)); }
});
"""


def network(size: int) -> bytes:
    """Residual blocks of four nodes, as long as asked for."""
    nodes, last = [], "x"
    for index in range(size):
        inputs = [last]
        kind = ("Relu", "Erf", "Sigmoid", "Add")[index % 4]
        if kind == "Add":
            inputs.append(f"t{index - 4}" if index >= 4 else "x")
        last = f"t{index}"
        nodes.append(helper.make_node(kind, inputs, [last], name=f"/blocks/blocks.{index // 4}/{kind}"))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "chain", [value("x", TensorProto.FLOAT, [1, 8, 4, 4])], [value(last, TensorProto.FLOAT, None)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def main() -> None:
    """Prints one row per size."""
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder) / "profile") as browser:
        base = None
        print(f"{'nodes':>6} {'kB':>6} {'open s':>7} {'ratio':>6} {'frame ms':>9} {'worst':>6}")
        for size in SIZES:
            file = Path(folder) / f"{size}.html"
            file.write_text(check(network(size), "all").to_html(), "utf-8")
            browser.get("about:blank")
            start = time.perf_counter()
            browser.get(file.as_uri())
            seconds = time.perf_counter() - start
            base = base or seconds
            frames = browser.execute_async_script(_DRAG)
            print(
                f"{size:6} {file.stat().st_size / 1000:6.0f} {seconds:7.2f} {seconds / base:6.1f} "
                f"{statistics.median(frames):9.1f} {max(frames):6.1f}"
            )


if __name__ == "__main__":
    main()
