"""Rules that lower PyTorch's ATen operators to ONNX. Importing this package adds them to ree.lowering."""
from ree.aten import creation, elements, indices, pooling, products, random, reductions, shapes

__all__ = ["creation", "elements", "indices", "pooling", "products", "random", "reductions", "shapes"]
