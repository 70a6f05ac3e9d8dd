"""Results for people: text, HTML, annotated ONNX."""
