#!/usr/bin/env python3
"""Writes the training steps in tests/data/training, which tests/python/training_steps.py runs without PyTorch.

    PYTHONPATH=build/python tests/python/make_training_steps.py      # needs PyTorch 2.5 or later

Another version of PyTorch may capture other operators: then other hashes must be recorded in training_steps.py."""
import pathlib

import torch
from torch import nn

import ree

F = nn.functional
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "training"


class Pictures(nn.Module):
    """A convolutional network with batch norm and dropout; dropout draws random numbers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1))
        self.head = nn.Linear(4 * 16, 10)

    def forward(self, image):
        return self.head(self.features(image))


class Words(nn.Module):
    """A transformer of one layer; its first and last matrix are one parameter."""

    def __init__(self, n_words=32, size=16, n_heads=2):
        super().__init__()
        self.n_heads = n_heads
        self.table = nn.Embedding(n_words, size)
        self.places = nn.Parameter(0.1 * torch.randn(12, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.attention, self.joined = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, ids):
        x = self.table(ids) + self.places
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
                   for part in self.attention(self.norms[0](x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(y.transpose(1, 2).flatten(2))
        x = x + self.narrow(F.gelu(self.wide(self.norms[1](x))))
        return self.norms[2](x) @ self.table.weight.t()


def picture_loss(model, image, kind):
    return F.cross_entropy(model(image), kind)


def word_loss(model, ids):
    return F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def main():
    torch.manual_seed(1)
    pictures, words = Pictures(), Words()
    ree.export_training(pictures, picture_loss, torch.optim.AdamW(pictures.parameters(), 0.01, foreach=True),
                        {"image": torch.zeros(8, 1, 8, 8), "kind": torch.zeros(8, dtype=torch.int64)},
                        FOLDER / "pictures.onnx")
    ree.export_training(words, word_loss, torch.optim.SGD(words.parameters(), 0.5, momentum=0.9, foreach=True),
                        torch.zeros(8, 12, dtype=torch.int64), FOLDER / "words.onnx", max_norm=1.0)


main()
