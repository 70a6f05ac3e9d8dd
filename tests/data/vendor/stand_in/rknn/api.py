"""Prints what the vendor's toolkit would: a rewrite of Sigmoid and Mul, and a table with Exp on the CPU.

The name of the graph says how a build ends: ``abort``, ``hang``, ``quit``, ``refuse``, ``raise`` or well. ``flaky``
aborts the first time and builds the second.
"""

import os
import pathlib
import time

import onnx

PREFIX = "D RKNN: [00:00:00.000] "


class RKNN:
    def __init__(self, verbose=False):
        assert verbose
        print("I rknn-toolkit2 version: 2.3.2")

    def config(self, target_platform):
        if not target_platform.startswith(("rk", "rv")):
            raise ValueError(f"Invalid target_platform '{target_platform}'!")
        self.platform = target_platform
        return 0

    def load_onnx(self, model, inputs=None, input_size_list=None):
        loaded = onnx.load(model)
        if loaded.opset_import[0].version > 19:
            print(
                f"\x1b[1;31mE\x1b[0m \x1b[1;31mload_onnx: Unsupport onnx opset {loaded.opset_import[0].version}\x1b[0m"
            )
            return -1
        self.graph = loaded.graph
        self.path = model
        return 0

    def build(self, do_quantization, dataset=None):
        if do_quantization:
            for path in pathlib.Path(dataset).read_text().split():
                assert pathlib.Path(path).is_file()
        how = self.graph.name
        mark = pathlib.Path(self.path).parent / "seen"
        if how == "abort" or (how == "flaky" and not mark.exists()):
            mark.touch()
            print("E RKNN: [00:00:00.000] failed to tile", flush=True)
            os.abort()
        if how == "hang":
            mark.write_text(str(os.getpid()))
            time.sleep(600)
        if how == "quit":
            os._exit(3)
        if how == "refuse":
            return -1
        if how == "raise":
            raise KeyError("Transpose_output")
        print("D fuse_ops results:")
        print("D     replace_exswish: remove node = ['sigmoid', 'mul'], add node = ['sigmoid_2swish']")
        print(PREFIX + "        Network Layer Information Table  ")
        print(PREFIX + "ID   OpType     DataType Target InputShape    OutputShape   Cycles  RW(KB)   FullName ")
        print(PREFIX + r"0    InputOperator      FLOAT16  CPU    \   (1,16,8,8)   0/0/0  0  InputOperator:x ")
        for index, (op, device, name) in enumerate(
            [("ConvExSwish", "NPU", "Conv:conv"), ("Exp", "CPU", "Exp:exp")], start=1
        ):
            print(PREFIX + f"{index}  {op}  FLOAT16  {device}  (1,16,8,8),(16,16,3,3)  (1,16,8,8)  0/0/0  8  {name} ")
        print(PREFIX + r"3    OutputOperator     FLOAT16  CPU    (1,16,8,8)  \   0/0/0  8  OutputOperator:z ")
        print("E RKNN: [00:00:00.000] REGTASK: The bit width of field value exceeds the limit, limit: 0x7, value: 0xf")
        pathlib.Path("check3_fuse_ops.onnx").write_bytes(b"dump")
        return 0
