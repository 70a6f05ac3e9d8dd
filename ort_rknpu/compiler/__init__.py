"""What the vendor's compiler does to a graph: rewrites, placement of each compiled op, fusion into rows."""

from ort_rknpu.compiler.compilation import Build, Compilation, CompiledOp
from ort_rknpu.compiler.compile import compile_model

__all__ = ["Build", "Compilation", "CompiledOp", "compile_model"]
