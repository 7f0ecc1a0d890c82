"""Networks of the sizes that people train: ResNet-18 for small images, a recurrent classifier."""

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn


class Residual(nn.Module):
    """Two convolutions of 3x3, each with batch norm, around a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels_out)
        self.second = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """He et al., "Deep residual learning for image recognition" (2015), as it is built for 32x32 images."""

    def __init__(self, classes: int = 10, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        blocks, channels = [], width
        for stage in range(4):
            for place in range(2):
                stride = 2 if stage and not place else 1
                blocks.append(Residual(channels, width << stage, stride))
                channels = width << stage
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(F.relu(self.norm(self.stem(images))))
        logits: Tensor = self.head(F.adaptive_avg_pool2d(features, 1).flatten(1))
        return logits


class Recurrent(nn.Module):
    """A class for a row of tokens: an embedding, two recurrent layers, the last state."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU], vocabulary: int = 23, width: int = 16) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = kind(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.layers(self.tokens(tokens))
        logits: Tensor = self.head(states[:, -1])
        return logits


class PaddedAttention(nn.Module):
    """Attention that ignores padding (token 0), RMS norm, SiLU, and output weights tied to the embedding."""

    def __init__(self, vocabulary: int = 19, width: int = 16) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.norm = nn.RMSNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True, bias=False)
        self.network = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        y = self.norm(x)
        x = x + self.attention(y, y, y, key_padding_mask=tokens == 0, need_weights=False)[0]
        logits: Tensor = self.head(x + self.network(x))
        return logits


class Generator(nn.Module):
    """Transposed convolutions and group norm: numbers in, images out."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(12, 8 * 3 * 3)
        self.grow = nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 8)
        self.apart = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8, bias=False)
        self.apart_norm = nn.InstanceNorm2d(8, affine=True)
        self.leave = nn.ConvTranspose2d(8, 1, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.enter(x).view(-1, 8, 3, 3)
        y = F.gelu(self.norm(self.grow(y)))
        y = F.gelu(self.apart_norm(self.apart(y)), approximate="tanh")
        image: Tensor = torch.tanh(self.leave(y))
        return image
