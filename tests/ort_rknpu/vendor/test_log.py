"""What is read out of the toolkit's log."""

from __future__ import annotations

from ort_rknpu.vendor.log import parse_log, parse_row
from ort_rknpu.vendor.records import Layer, Rewrite

PREFIX = "D RKNN: [21:58:05.919] "


def test_a_row_has_op_device_shapes_and_name() -> None:
    line = "8    Concat    FLOAT16  NPU    (1,16,32,32),(1,16,32,32),... (1,48,32,32)  0/0/0  96  Concat:/b.2/Concat"
    shape = (1, 16, 32, 32)
    assert parse_row(line) == Layer("Concat", "npu", (shape, shape), ((1, 48, 32, 32),), "/b.2/Concat")


def test_a_row_the_compiler_made_has_no_name() -> None:
    line = "4    Conv               INT8     CPU    (1,4,20,16),(4,4,1,1),(4)  (1,4,20,16)  328/640/640  2    "
    row = parse_row(line)
    assert row is not None
    assert (row.op, row.device, row.name) == ("Conv", "cpu", "")


def test_colons_belong_to_the_name() -> None:
    row = parse_row(
        "3    Split              FLOAT16  NPU    (2,128,1,1),(2)  (1,128,1,1),...  0/0/0  0  Split:F2::If_0/sp"
    )
    assert row is not None
    assert row.name == "F2::If_0/sp"


def test_inputs_outputs_and_other_tables_are_no_rows() -> None:
    log = "\n".join(
        PREFIX + line
        for line in (
            "   Network Layer Information Table   ",
            "-----",
            "ID   OpType             DataType Target InputShape  OutputShape  Cycles(DDR/NPU/Total)  RW(KB)  FullName ",
            "-----",
            r"0    InputOperator      FLOAT16  CPU    \           (1,16)  0/0/0  0  InputOperator:x ",
            "1    Exp                FLOAT16  CPU    (1,16)      (1,16)       0/0/0                  8       Exp:E ",
            r"2    OutputOperator     FLOAT16  CPU    (1,16)      \       0/0/0  8  OutputOperator:z",
            "-----",
            "<<<<<<<< end: rknn::RKNNModelRegCmdbuildPass",
            "ID  User           Tensor   DataType  DataFormat   OrigShape  NativeShape |  [Start  End)  Size",
            "1   Exp            x        FLOAT16   NC1HWC2      (1,16)  (1,8,16) | 0x00000000 0x00002000 0x00002000",
        )
    )
    assert parse_log(log).layers == (Layer("Exp", "cpu", ((1, 16),), ((1, 16),), "E"),)


def test_rewrites_keep_names_with_quotes_and_lists_without_additions() -> None:
    log = "\n".join(
        (
            "D fold_constant remove nodes = ['a', 'b']",
            "D fuse_ops results:",
            "D     replace_exswish: remove node = ['S', 'M'], add node = ['S_2swish']",
            "D     bypass_two_reshape: remove node = ['x_rs', \"it's\"]",
            "D     unsqueeze_to_4d_add: remove node = [], add node = ['x_rs', 'y[0]-rs']",
            "D     fold_constant ...",
        )
    )
    assert parse_log(log).rewrites == (
        Rewrite("fold_constant", ("a", "b"), ()),
        Rewrite("replace_exswish", ("S", "M"), ("S_2swish",)),
        Rewrite("bypass_two_reshape", ("x_rs", "it's"), ()),
        Rewrite("unsqueeze_to_4d_add", (), ("x_rs", "y[0]-rs")),
    )


def test_errors_lose_their_colour_and_overflows_stand_apart() -> None:
    log = "\n".join(
        (
            "\x1b[1;31mE\x1b[0m \x1b[1;31mbuild: Traceback (most recent call last):",
            '  File "x.py", line 1, in build',
            "onnx.Fail: no such thing",
            "\x1b[1;31mE\x1b[0m \x1b[1;31mrknn-toolkit2 version: 2.3.2\x1b[0m",
            "E RKNN: [21:57:55.585] Unkown op target: 0",
            "E RKNN: [21:57:55.585] Unkown op target: 0",
            "E RKNN: [21:57:55.586] REGTASK: The bit width of field value exceeds the limit, target: v2, limit: 0x7",
        )
    )
    found = parse_log(log)
    assert found.errors == ("onnx.Fail: no such thing", "Unkown op target: 0")
    assert found.overflows == ("REGTASK: The bit width of field value exceeds the limit, target: v2, limit: 0x7",)
