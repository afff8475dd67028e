"""What the training rewards."""
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

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
    margins: Tensor, yes: Tensor, groups: Tensor, cosines: Tensor, has_option: Tensor, smoothing: float
) -> Losses:
    """`groups` numbers the questions of choices and scores from 0; -1 is a predicate.

    Single: every branch is a yes or no of its own. Group: the right option against all of its question, as the server
    normalises. Similarity: the same for the cosines alone, so that vectors stay apart on their own.
    """
    grouped = groups >= 0
    target = yes.float() * (1 - 2 * smoothing) + smoothing
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


def _of_group(
    scores: Tensor, inside: Tensor, right: Tensor, index: Tensor, sizes: Tensor, smoothing: float
) -> Tensor:
    """Cross entropy of a softmax within each group, a share of the target spread over its options."""
    outside = torch.full_like(scores, -1e9)
    shifted = torch.where(inside, scores, outside)
    # Only for the numbers' sake: no gradient goes through the largest.
    top = torch.full_like(sizes, -1e9).scatter_reduce(0, index, shifted.detach(), "amax")
    mass = torch.where(inside, (shifted - top[index]).exp(), torch.zeros_like(scores))
    total = top + torch.zeros_like(sizes).index_add(0, index, mass).clamp(min=1e-30).log()
    of_right = (total[index] - scores)[right].mean()
    spread = torch.where(inside, (total[index] - scores) / sizes[index].clamp(min=1), torch.zeros_like(scores))
    used = torch.zeros_like(sizes).index_add(0, index, inside.float()).gt(0).sum().clamp(min=1)
    return (1 - smoothing) * of_right + smoothing * spread.sum() / used
