"""A BERT-like encoder that reads evidence once: evidence sees evidence, a branch sees the evidence, its parent and itself.

A branch's margin is read at its last token. The margin of a choice's option also has the cosine of two vectors, that of
the evidence and that of the option's text read alone: the mean of the last layer over a text's tokens, which is what
the network was pretrained for. How much the cosine counts is read at the branch's last token too: it tells intents
apart and says nothing about, for example, entailment.
"""
from pathlib import Path
from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from .config import Network
from .packed import read


# The block sizes that are chosen without gradients take more of a Hopper's shared memory than it has, where a bias is read by place.
WITHOUT_GRADIENTS = {"num_stages": 1, "BLOCK_M": 64, "BLOCK_N": 64}


class Block(nn.Module):
    def __init__(self, shape: Network) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.qkv, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, shape.feed_forward), nn.Linear(shape.feed_forward, width)
        self.attention_norm, self.feed_norm = (nn.LayerNorm(width, shape.epsilon) for _ in range(2))
        self.drop = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, mask: Tensor | BlockMask, bias: Tensor | Callable | None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if isinstance(mask, BlockMask):
            attended = flex_attention(q, k, v, block_mask=mask, score_mod=bias, kernel_options=None if torch.is_grad_enabled() else WITHOUT_GRADIENTS)
        else:
            added = mask if bias is None else bias.masked_fill(~mask, float("-inf")).to(q.dtype)
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=added)
        attended = self.attention_out(attended.transpose(1, 2).reshape(batch, length, width))
        x = self.attention_norm(x + self.drop(attended))
        return self.feed_norm(x + self.drop(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    def __init__(self, shape: Network = Network()) -> None:
        super().__init__()
        self.shape = shape
        width, positions = shape.width, shape.positions
        self.token, self.position = nn.Embedding(shape.vocabulary, width), nn.Embedding(positions, width)
        # What a head adds for a key so far after (or before) the query, by the difference of their places; never trained.
        self.register_buffer("relative", torch.zeros(shape.heads, 2 * positions) if shape.is_relative else None)
        self.segment, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, shape.epsilon)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.drop = nn.Dropout(shape.dropout)
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, 1)
        self.gate = nn.Linear(width, 1)
        self.recall = nn.Linear(width, width, bias=False)
        nn.init.eye_(self.recall.weight)
        nn.init.normal_(self.out.weight, std=0.02)
        for zero in (self.out.bias, self.gate.weight, self.gate.bias):
            nn.init.zeros_(zero)

    def forward(self, ids: Tensor, positions: Tensor, branches: Tensor, mask: Tensor | BlockMask) -> Tensor:
        shape, is_branch = self.shape, branches > 0
        place = torch.where(
            is_branch,
            shape.evidence_positions + positions % shape.branch_positions,
            positions % shape.evidence_positions,
        )
        x = self.token(ids) + self.position(place) + self.segment(is_branch.long())
        x = self.drop(self.norm(x))
        bias = self.bias(place, isinstance(mask, BlockMask))
        for block in self.blocks:
            x = block(x, mask, bias)
        return x

    def bias(self, place: Tensor, flexible: bool) -> Tensor | Callable | None:
        """What flexible attention does to a score; otherwise the table [rows, heads, queries, keys] to add."""
        table, zero = self.relative, self.shape.positions
        if table is None:
            return None
        if not flexible:
            return table[:, place[:, None, :] - place[:, :, None] + zero].transpose(0, 1)

        def added(score: Tensor, row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + table[head, place[row, key] - place[row, query] + zero]

        return added

    def margins(self, hidden: Tensor) -> Tensor:
        return self.out(torch.tanh(self.dense(hidden))).squeeze(-1).float()

    def similarity_weights(self, hidden: Tensor) -> Tensor:
        """How much the cosine counts for a branch: from 0 to twice the scale, the scale at first."""
        return 2 * self.shape.similarity_scale * torch.sigmoid(self.gate(hidden)).squeeze(-1).float()


def tree_mask(documents: Tensor, branches: Tensor, parents: Tensor) -> Tensor:
    same = documents[:, :, None] == documents[:, None, :]
    seen = branches[:, None, :]
    return (same & ((seen == 0) | (seen == branches[:, :, None]) | (seen == parents[:, :, None])))[:, None]


Vectors = Callable[[Tensor], Tensor]


def vectors(hidden: Tensor, documents: Tensor, branches: Tensor, project: nn.Linear | None = None) -> Vectors:
    """Gives the mean over the shared tokens of wanted documents, projected, of length one; wanted is [N, 2]: row and document."""
    rows, length, width = hidden.shape
    count = int(documents.max()) + 1
    keys = (torch.arange(rows, device=hidden.device)[:, None] * count + documents).flatten()
    weights = (branches == 0).flatten().to(hidden.dtype)
    sums = torch.zeros(rows * count, width, dtype=hidden.dtype, device=hidden.device)
    sums = sums.index_add(0, keys, hidden.reshape(-1, width) * weights[:, None])
    # A document's own length does not matter: only the direction of the sum is used.
    found = F.normalize((sums if project is None else project(sums)).float(), dim=-1)
    return lambda wanted: found[wanted[:, 0] * count + wanted[:, 1]]


def load_weights(file: Path, network: Encoder) -> None:
    """All weights of a network of this kind."""
    network.load_state_dict({name: torch.from_numpy(array) for name, array in read(file).items()})


def load_pretrained(file: Path, network: Encoder) -> None:
    """Weights that `convert` wrote; only what makes margins is new."""
    missing, unexpected = network.load_state_dict({name: torch.from_numpy(array) for name, array in read(file).items()}, strict=False)
    new = {"recall.weight"} | {f"{part}.{kind}" for part in ("dense", "out", "gate") for kind in ("weight", "bias")}
    assert not unexpected and set(missing) == new, (missing, unexpected)
