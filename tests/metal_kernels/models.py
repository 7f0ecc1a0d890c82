"""A small named cast of modules, one for each thing that makes capture hard."""

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import nn


class Mlp(nn.Sequential):
    """Digits-sized: 64 features, 10 classes."""

    def __init__(self, hidden: int = 32) -> None:
        super().__init__(
            nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 10)
        )


class Cnn(nn.Module):
    """Convolution, batch norm with running statistics, max and average pooling; 8x8 images, 10 classes."""

    def __init__(self, *, bias: bool = True) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1, bias=bias)
        self.first_norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 2 * 2, 10)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.first_norm(self.first(images))), 2)
        x = F.avg_pool2d(F.relu(self.second_norm(self.second(x))), 2)
        return self.head(x.flatten(1))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.mix = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        rows, length, width = x.shape
        split = self.qkv(self.attention_norm(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.mlp_norm(x))


class Gpt(nn.Module):
    """Causal attention, layer norm, an output matrix tied to the embedding; 8 tokens, a vocabulary of 17."""

    def __init__(self, *, bias: bool = True) -> None:
        super().__init__()
        self.tokens = nn.Embedding(17, 16)
        self.positions = nn.Embedding(8, 16)
        self.blocks = nn.Sequential(*(Block(16, heads=2, bias=bias) for _ in range(2)))
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 17, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, indices):
        x = self.tokens(indices) + self.positions(torch.arange(indices.shape[1], device=indices.device))
        return self.head(self.norm(self.blocks(x)))
