"""NPU numerics against float32, and a source model against the toolkit's dump."""
