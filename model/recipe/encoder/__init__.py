"""The network: from a pretrained encoder and examples to an ONNX file."""
