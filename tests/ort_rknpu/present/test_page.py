"""The HTML report in a real browser: it opens alone, filters, explains, and runs nothing of the model's text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

import ort_rknpu
from ort_rknpu.compare.compare import compare
from ort_rknpu.compare.diff import diff
from ort_rknpu.present.html import render
from ort_rknpu.report import Report
from tests.ort_rknpu.graphs import make_model, tensor
from tests.ort_rknpu.present.browser import chromium

EXOPS = Path(__file__).parents[2] / "data" / "exops"
HOSTILE = "</script><script>document.title='owned'</script>\"'><img src=x onerror=\"document.title='owned'\">🦊&lt;"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def report() -> Report:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Erf", ["a"], ["b"], name="middle/Erf"),
        helper.make_node("Sigmoid", ["b"], ["y"], name="last"),
    ]
    model = make_model(nodes, [tensor("x", [1, 8, 4, 4])], ["y"])
    return ort_rknpu.check(model, ["rk3588", "rk3566", "rv1106"], rules="documented")


def show(browser: Chrome, page: str, folder: Path, width: int = 1400) -> list[dict[str, Any]]:
    """Opens the page from a file and returns the console's messages."""
    file = folder / "report.html"
    file.write_text(page, "utf-8")
    browser.set_window_size(width, 1200)
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(file.as_uri())
    assert browser.find_element(By.TAG_NAME, "html").get_attribute("data-ready") == "true"
    return list(browser.get_log("browser"))


def visible_rows(browser: Chrome) -> list[str]:
    rows = browser.find_elements(By.CSS_SELECTOR, ".nodes tbody tr")
    return [row.text.splitlines()[0] for row in rows if row.is_displayed()]


def node(browser: Chrome, index: int) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f".graph [data-node='{index}']")


def test_the_page_opens_without_errors_or_requests(browser: Chrome, report: Report, tmp_path: Path) -> None:
    assert show(browser, report.to_html(), tmp_path) == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    urls = [r["request"]["url"] for r in requests if r["documentURL"].startswith("file:")]
    assert [url.rpartition("/")[2] for url in urls] == ["report.html"]


def test_search_and_filters_narrow_the_table_and_the_graph(browser: Chrome, report: Report, tmp_path: Path) -> None:
    show(browser, report.to_html(), tmp_path)
    assert len(visible_rows(browser)) == 3
    search = browser.find_element(By.CSS_SELECTOR, ".filters input")
    search.send_keys("erf")
    assert [row.split(" ")[0] for row in visible_rows(browser)] == ["middle/Erf"]
    assert "faint" in (node(browser, 0).get_attribute("class") or "")
    assert "faint" not in (node(browser, 1).get_attribute("class") or "")
    for _ in "erf":
        search.send_keys(Keys.BACKSPACE)
    Select(browser.find_element(By.CSS_SELECTOR, ".filters select")).select_by_value("npu")
    expected = [n.name for n in report.targets[0].nodes if n.verdict == "npu"]
    assert [row.split(" ")[0] for row in visible_rows(browser)] == expected


def test_a_click_on_a_node_shows_its_reason(browser: Chrome, report: Report, tmp_path: Path) -> None:
    show(browser, report.to_html(), tmp_path)
    node(browser, 1).click()
    detail = browser.find_element(By.CSS_SELECTOR, ".detail").text
    clause = report.targets[0].nodes[1].clauses[0]
    for part in ("middle/Erf", clause.text, clause.id, clause.source, "float32[1,8,4,4]"):
        assert part in detail
    assert browser.find_element(By.CSS_SELECTOR, "tr[aria-selected='true']").text.startswith("middle/Erf")


def test_a_click_on_a_row_selects_the_node(browser: Chrome, report: Report, tmp_path: Path) -> None:
    show(browser, report.to_html(), tmp_path)
    browser.find_elements(By.CSS_SELECTOR, ".nodes tbody button")[2].click()
    assert "selected" in (node(browser, 2).get_attribute("class") or "")


def test_arrow_keys_move_through_the_graph(browser: Chrome, report: Report, tmp_path: Path) -> None:
    show(browser, report.to_html(), tmp_path)
    graph = browser.find_element(By.CSS_SELECTOR, ".graph svg")
    graph.send_keys(Keys.ARROW_DOWN)
    graph.send_keys(Keys.ARROW_DOWN)
    assert browser.find_element(By.CSS_SELECTOR, ".detail h2").text == "middle/Erf"


def test_a_tab_changes_the_soc(browser: Chrome, report: Report, tmp_path: Path) -> None:
    show(browser, report.to_html(), tmp_path)
    tabs = browser.find_elements(By.CSS_SELECTOR, "[role='tab']")
    assert [tab.text for tab in tabs] == ["rk3588 fp16", "rk3566 fp16", "rv1106 int8"]
    tabs[2].click()
    assert "rv1106 int8" in browser.find_element(By.CSS_SELECTOR, ".sentence").text
    node(browser, 1).click()
    badge = browser.find_element(By.CSS_SELECTOR, ".detail .badge").text
    assert badge == report.targets[2].nodes[1].verdict


def test_the_drift_plot_marks_overflow(browser: Chrome, report: Report, tmp_path: Path) -> None:
    page = {
        "nodes": [{"name": "n", "op": "Relu", "domain": "", "inputs": [], "reads": "", "writes": ""}],
        "clauses": [],
        "targets": [
            {"label": "rk3588", "sentence": "s", "state": "ok", "build": [], "verdicts": ["npu"], "partitions": [0],
             "clauses": [None], "compiled": [None], "transitions": 0}
        ],
        "drift": {
            "title": "Drift", "label": "tensors",
            "tensors": [
                {"name": "a", "node": 0, "error": 1e-4, "overflow": 0, "worst": False, "text": "small"},
                {"name": "b", "node": 0, "error": 1e-2, "overflow": 3, "worst": True, "text": "3 overflow"},
            ],
        },
    }  # fmt: skip
    assert show(browser, render("t", "s", page), tmp_path) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".drift .dot")) == 1
    assert len(browser.find_elements(By.CSS_SELECTOR, ".drift .overflow")) == 1


def test_compare_shows_the_drift_along_the_network(browser: Chrome, tmp_path: Path) -> None:
    found = compare(EXOPS / "_models" / "vit" / "source.onnx", "rk3588")
    assert show(browser, found.to_html(), tmp_path) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".drift .dot")) == len(found.tensors)
    browser.find_element(By.CSS_SELECTOR, ".plot summary").click()
    worst = browser.find_element(By.CSS_SELECTOR, ".plot tbody button")
    worst.click()
    assert worst.text in browser.find_element(By.CSS_SELECTOR, ".detail .fact").text


def test_diff_opens_at_the_node_that_differs(browser: Chrome, tmp_path: Path) -> None:
    case = EXOPS / "exSDPAttention" / "MISMATCH_mask_then_scale"
    found = diff(case / "source.onnx", case / "fused.onnx")
    assert show(browser, found.to_html(), tmp_path) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".graph .marked")) == 1
    detail = browser.find_element(By.CSS_SELECTOR, ".detail").text
    assert "exSDPAttention" in detail
    assert "differs by up to" in detail


@pytest.mark.parametrize("width", [420, 1400])
def test_nothing_is_wider_than_the_window(browser: Chrome, report: Report, tmp_path: Path, width: int) -> None:
    show(browser, report.to_html(), tmp_path, width)
    across, window = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert across <= window


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_colour_schemes(browser: Chrome, report: Report, tmp_path: Path, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    show(browser, report.to_html(), tmp_path)
    for selector in ("body", ".badge.v-npu", ".badge.v-cpu, .badge.v-unsupported"):
        shown = browser.find_element(By.CSS_SELECTOR, selector)
        ink, paper = (shown.value_of_css_property(name) for name in ("color", "background-color"))
        assert contrast(ink, paper) >= 4.5
    assert browser.get_screenshot_as_png().startswith(b"\x89PNG")


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two CSS rgb colours by WCAG 2."""

    def luminance(colour: str) -> float:
        channels = [int(float(part)) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_names_made_of_markup_stay_text(browser: Chrome, tmp_path: Path) -> None:
    names = [HOSTILE, "long" * 2500, "\u2028line\u0001"]
    nodes = [
        helper.make_node("Relu", [source], [target], name=name)
        for name, source, target in zip(names, ["x", HOSTILE + "t", "b"], [HOSTILE + "t", "b", "y"])
    ]
    model = make_model(nodes, [tensor("x", [1, 8, 4, 4], TensorProto.FLOAT)], ["y"])
    report = ort_rknpu.check(model, "rk3588", rules="documented")
    assert show(browser, report.to_html(), tmp_path) == []
    for index in range(3):
        node(browser, index).click()
    assert browser.title != "owned"
    assert browser.find_elements(By.CSS_SELECTOR, "img") == []
    assert HOSTILE[:60] in browser.find_element(By.CSS_SELECTOR, ".nodes tbody").text


def test_a_notebook_gets_the_page_in_a_frame(report: Report) -> None:
    fragment = report._repr_html_()
    assert fragment.startswith("<iframe srcdoc=")
    assert "<script" not in fragment


def test_eleven_socs_of_300_nodes_stay_below_2_mb() -> None:
    names = [f"t{i}" for i in range(301)]
    nodes = [
        helper.make_node("Erf" if i % 3 else "Relu", [names[i]], [names[i + 1]], name=f"/blocks/blocks.{i}/act")
        for i in range(300)
    ]
    model = make_model(nodes, [tensor("t0", [1, 8, 4, 4])], ["t300"])
    page = ort_rknpu.check(model, "all", rules="documented").to_html()
    assert len(page.encode()) < 2_000_000
