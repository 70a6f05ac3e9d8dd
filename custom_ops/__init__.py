"""The ex* operators of Rockchip's toolkit: contracts, numpy reference, ONNX lowering and Python-op runtime."""
