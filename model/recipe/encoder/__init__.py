"""The recipe of umpire-decide: from a pretrained BERT encoder to the ONNX file that the product ships."""
