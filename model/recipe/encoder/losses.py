"""What the training rewards."""
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..examples import UNKNOWN

RIGHT_OPTION_SHARE = 0.5
CHOICE_SHARE = 1.5
COSINE_SCALE = 50.0
# In a choice of few the options often say nothing of the text ("entailment", "the first answer"): no similarity to learn.
SIMILAR_OPTIONS_MIN = 5


class Losses(NamedTuple):
    single: Tensor
    group: Tensor
    similarity: Tensor


def losses(
    margins: Tensor, targets: Tensor, groups: Tensor, cosines: Tensor, has_option: Tensor, smoothing: float
) -> Losses:
    """`targets` are 1, 0 and `UNKNOWN`; `groups` numbers the questions of choices and scores from 0; -1 is a predicate.

    Single: every branch is a yes or no of its own. Group: the right option against all of its question, as the server
    normalises. Similarity: the same for the cosines alone, so that vectors stay apart on their own.
    """
    grouped = groups >= 0
    yes = targets == 1
    target = torch.where(targets == UNKNOWN, 0.5, yes.float() * (1 - 2 * smoothing) + smoothing)
    each = F.binary_cross_entropy_with_logits(margins, target, reduction="none")
    if not grouped.any():
        return Losses(each.mean(), margins.sum() * 0, cosines.sum() * 0)
    count = int(groups.max()) + 1
    index = groups.clamp(min=0)
    sizes = torch.zeros(count, device=margins.device).index_add(0, index, grouped.float())
    # A choice of many is mostly no: its right option weighs as much as all wrong ones together.
    weight = torch.where(grouped, CHOICE_SHARE / sizes[index].clamp(min=1), torch.ones_like(margins))
    weight = torch.where(grouped & yes, weight + RIGHT_OPTION_SHARE, weight)
    single = (each * weight).sum() / weight.sum()
    group = _of_group(F.logsigmoid(margins), grouped, grouped & yes, index, sizes, smoothing)
    similarity = cosines.sum() * 0
    many = has_option & (sizes[index] >= SIMILAR_OPTIONS_MIN)
    if (many & yes).any():
        similarity = _of_group(COSINE_SCALE * cosines, many, many & yes, index, sizes, smoothing)
    return Losses(single, group, similarity)


class Recall(NamedTuple):
    """How far recalled vectors are from the untouched network's: each by itself, and the options of a choice by their cosines."""

    vectors: Tensor
    cosines: Tensor


def recall_losses(
    recalled: tuple[Tensor, Tensor], untouched: tuple[Tensor, Tensor], groups: Tensor, has_option: Tensor
) -> Recall:
    """Each pair: vectors [N, width] of a branch's evidence and of its option."""
    apart = [1 - (mine * theirs).sum(-1) for mine, theirs in zip(recalled, untouched)]
    alone = apart[0].mean() + torch.where(has_option, apart[1], torch.zeros_like(apart[1])).sum() / has_option.sum().clamp(min=1)
    if not has_option.any():
        return Recall(alone, alone * 0)
    count, index = int(groups.max()) + 1, groups.clamp(min=0)
    logs = [
        _log_softmax(COSINE_SCALE * (evidence * option).sum(-1), has_option, index, count)
        for evidence, option in (recalled, untouched)
    ]
    apart = torch.where(has_option, logs[1].exp() * (logs[1] - logs[0]), torch.zeros_like(logs[0]))
    return Recall(alone, apart.sum() / _used(has_option, index, count))


def _of_group(
    scores: Tensor, inside: Tensor, right: Tensor, index: Tensor, sizes: Tensor, smoothing: float
) -> Tensor:
    """Cross entropy of a softmax within each group, a share of the target spread over its options."""
    logs = _log_softmax(scores, inside, index, len(sizes))
    spread = torch.where(inside, -logs / sizes[index].clamp(min=1), torch.zeros_like(scores))
    return (1 - smoothing) * -logs[right].mean() + smoothing * spread.sum() / _used(inside, index, len(sizes))


def _log_softmax(scores: Tensor, inside: Tensor, index: Tensor, count: int) -> Tensor:
    """Within each group; what is not inside has no say in it."""
    nothing = torch.full((count,), -1e9, device=scores.device)
    shifted = torch.where(inside, scores, torch.full_like(scores, -1e9))
    # Only for the numbers' sake: no gradient goes through the largest.
    top = nothing.scatter_reduce(0, index, shifted.detach(), "amax")
    mass = torch.where(inside, (shifted - top[index]).exp(), torch.zeros_like(scores))
    total = top + torch.zeros_like(nothing).index_add(0, index, mass).clamp(min=1e-30).log()
    return torch.where(inside, scores - total[index], torch.zeros_like(scores))


def _used(inside: Tensor, index: Tensor, count: int) -> Tensor:
    return torch.zeros(count, device=index.device).index_add(0, index, inside.float()).gt(0).sum().clamp(min=1)
