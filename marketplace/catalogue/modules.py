"""The catalogue's models as plain torch modules, made of core layers only."""

import math

import torch
from torch import Tensor, nn

# Far below any score, yet finite: GPU languages have no literal for infinity.
MASKED = -1e9

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class MlpModule(nn.Module):
    """(batch, ...) -> (batch, outputs)."""

    def __init__(
        self, *, inputs: int, hidden: tuple[int, ...], outputs: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        for width_in, width_out in zip((inputs, *hidden), hidden, strict=False):
            layers += [nn.Linear(width_in, width_out), _ACTIVATIONS[activation]()]
            layers += [nn.Dropout(dropout)] if dropout else []
        layers.append(nn.Linear(hidden[-1], outputs))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y


class CnnModule(nn.Module):
    """(batch, channels, height, width), or the same flat -> (batch, outputs)."""

    def __init__(self, *, image: tuple[int, int, int], channels: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.image = image
        layers: list[nn.Module] = []
        for index, (channels_in, channels_out) in enumerate(
            zip((image[0], *channels), channels, strict=False)
        ):
            stride = 1 if index == 0 else 2
            layers += [
                nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(channels_out),
                nn.ReLU(),
            ]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(channels[-1], outputs)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x.reshape(x.shape[0], *self.image))
        y: Tensor = self.head(features.mean(dim=(2, 3)))
        return y


class GptModule(nn.Module):
    """Tokens (batch, length) -> logits (batch, length, vocabulary); length is at most the context."""

    def __init__(
        self, *, vocabulary: int, context: int, width: int, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(context, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.Sequential(
            *(GptBlock(width=width, heads=heads, dropout=dropout) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        y: Tensor = self.head(self.norm(self.blocks(self.drop(x))))
        return y


class GptBlock(nn.Module):
    """Causal self-attention and a two-layer network, each added to what came in (pre-norm, as in GPT-2).

    Dropout, if any, is where GPT-2 has it: on the attention's weights and on what is added.
    """

    def __init__(self, *, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.drop = nn.Dropout(dropout)
        self.attention_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.attention_out = nn.Linear(width, width)
        self.network_norm = nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self._attend(self.attention_norm(x)))
        y: Tensor = x + self.drop(self.network(self.network_norm(x)))
        return y

    def _attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            project(x).reshape(heads).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        position = torch.arange(length, device=x.device)
        future = position[None, :] > position[:, None]
        weights = scores.masked_fill(future, MASKED).softmax(dim=-1)
        mixed = (self.drop(weights) @ value).transpose(1, 2).reshape(batch, length, width)
        y: Tensor = self.attention_out(mixed)
        return y
