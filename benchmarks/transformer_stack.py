"""A decoder of 65 billion parameters (LLaMA-65B's sizes), to be summarised and never allocated."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, HIDDEN, VOCABULARY = 8192, 80, 64, 22016, 32000


class Block(nn.Module):
    """Causal attention and a gated feed-forward, both residual."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm = nn.RMSNorm(WIDTH)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        hidden = self.norm(x)
        down: Tensor = self.down(F.silu(self.gate(hidden)) * self.up(hidden))
        return x + down


class Decoder(nn.Module):
    """Token ids to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


if __name__ == "__main__":
    with torch.device("meta"):
        print(f"{sum(p.numel() for p in Decoder().parameters()):,}")
