"""What the training rewards."""
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..examples import UNKNOWN, UNLABELLED

RIGHT_OPTION_SHARE = 0.5
CHOICE_SHARE = 1.5
COSINE_SCALE = 20.0
# In a choice of few the options often say nothing of the text ("entailment", "the first answer"): no similarity to learn.
SIMILAR_OPTIONS_MIN = 5


class Losses(NamedTuple):
    single: Tensor
    group: Tensor
    similarity: Tensor
    ordinal: Tensor
    pair: Tensor
    law: Tensor
    margin: Tensor
    share: Tensor
    apart: Tensor


class Answers(NamedTuple):
    """What is to be rewarded, of N branches.

    `targets` are 1, 0, `UNKNOWN` and `UNLABELLED`; `groups` numbers the questions of choices and scores from 0, the branches of one side
    by side and a score's levels from the lowest up; -1 is a predicate. `has_option` is true of choices. `pairs` [P, 2]: the margin of
    the first is to be the larger one. `terms` [T, 3]: number of a law, branch, sign; `laws` [L, 2]: total, and 1 where it is a bound.
    `families` numbers the same branch about texts that differ in little from 0; -1 is in none.
    """

    targets: Tensor
    groups: Tensor
    has_option: Tensor
    pairs: Tensor
    terms: Tensor
    laws: Tensor
    families: Tensor


def losses(margins: Tensor, cosines: Tensor, answers: Answers, smoothing: float, taught: Tensor | None = None) -> Losses:
    """Single: every branch is a yes or no of its own. Group: the right option against all of its question, as the server
    normalises. Similarity: the same for the cosines alone, so that vectors stay apart on their own. Ordinal: how far off a score
    is. Pair: the same branch about two texts that differ in little. Law: what the probabilities of a question's forms have to obey.
    The rest is of a teacher's margins, `taught`: see `taught_losses`.
    """
    targets, groups, has_option, pairs, terms, laws, _ = answers
    every, labelled, yes, nothing = groups >= 0, targets != UNLABELLED, targets == 1, margins.sum() * 0
    grouped = every & labelled
    target = torch.where(targets == UNKNOWN, 0.5, yes.float() * (1 - 2 * smoothing) + smoothing)
    each = F.binary_cross_entropy_with_logits(margins, target, reduction="none")
    pair = F.softplus(1.0 - (margins[pairs[:, 0]] - margins[pairs[:, 1]])).mean() if len(pairs) else nothing
    index = groups.clamp(min=0)
    count = int(index.max()) + 1
    sizes = torch.zeros(count, device=margins.device).index_add(0, index, every.float())
    # A choice of many is mostly no: its right option weighs as much as all wrong ones together.
    weight = torch.where(grouped, CHOICE_SHARE / sizes[index].clamp(min=1), labelled.float())
    weight = torch.where(grouped & yes, weight + RIGHT_OPTION_SHARE, weight)
    single = (each * weight).sum() / weight.sum().clamp(min=1)
    logs = _log_softmax(F.logsigmoid(margins), every, index, count)
    group = _cross_entropy(logs, grouped, grouped & yes, index, sizes, smoothing)
    many = grouped & has_option & (sizes[index] >= SIMILAR_OPTIONS_MIN)
    similarity = _cross_entropy(_log_softmax(COSINE_SCALE * cosines, many, index, count), many, many & yes, index, sizes, smoothing)
    probabilities = torch.where(every, logs.exp(), margins.sigmoid())
    ordinal = ordinal_loss(probabilities, yes, grouped & ~has_option, index, sizes)
    law = law_loss(probabilities, terms, laws)
    of_teacher = (nothing, nothing, nothing) if taught is None else taught_losses(margins, taught, answers, logs, sizes)
    return Losses(single, group, similarity, ordinal, pair, law, *of_teacher)


def taught_losses(margins: Tensor, taught: Tensor, answers: Answers, logs: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How far from a teacher's margins, every question counting as one. Margin: of each branch. Share: of the probabilities of each
    question. Apart: how far apart the margins of a question's branches are, and those of the same branch about texts that differ in little.
    """
    grouped, index = answers.groups >= 0, answers.groups.clamp(min=0)
    weight = torch.where(grouped, 1 / sizes[index].clamp(min=1), torch.ones_like(margins))
    margin = (F.smooth_l1_loss(margins, taught, reduction="none") * weight).sum() / weight.sum()
    of_options = _log_softmax(F.logsigmoid(taught), grouped, index, len(sizes))
    yes = taught.sigmoid()
    off = yes * (F.logsigmoid(taught) - F.logsigmoid(margins)) + (1 - yes) * (F.logsigmoid(-taught) - F.logsigmoid(-margins))
    share = torch.where(grouped, of_options.exp() * (of_options - logs), off).sum() / weight.sum()
    apart = _apart(margins - taught, answers.groups) + _apart(margins - taught, answers.families)
    return margin, share, apart


def _apart(off: Tensor, groups: Tensor) -> Tensor:
    """How far what is off is from its mean within a group."""
    inside, index = groups >= 0, groups.clamp(min=0)
    none = torch.zeros(int(index.max()) + 1, device=off.device)
    means = none.index_add(0, index, off * inside) / none.index_add(0, index, inside.float()).clamp(min=1)
    each = F.smooth_l1_loss(off, means[index], reduction="none") * inside
    return each.sum() / inside.sum().clamp(min=1)


def ordinal_loss(probabilities: Tensor, yes: Tensor, is_level: Tensor, index: Tensor, sizes: Tensor) -> Tensor:
    """The ranked probability score of scores: the square of what lies below each level against what should, a mean over the levels."""
    apart = torch.where(is_level, probabilities - yes.float(), torch.zeros_like(probabilities)).double()
    # Both add up to one in every question, so that a running sum begins at zero again with the next.
    below = apart.cumsum(0)
    each = (below**2 / (sizes[index] - 1).clamp(min=1)).float()
    return torch.where(is_level, each, torch.zeros_like(each)).sum() / _used(is_level, index, len(sizes))


def law_loss(probabilities: Tensor, terms: Tensor, laws: Tensor) -> Tensor:
    if not len(laws):
        return probabilities.sum() * 0
    sums = torch.zeros(len(laws), device=probabilities.device).index_add(0, terms[:, 0], terms[:, 2].float() * probabilities[terms[:, 1]])
    off = sums - laws[:, 0].float()
    return torch.where(laws[:, 1] == 1, off.clamp(min=0), off).square().mean()


def _cross_entropy(
    logs: Tensor, inside: Tensor, right: Tensor, index: Tensor, sizes: Tensor, smoothing: float
) -> Tensor:
    """Of a softmax within each group, a share of the target spread over its options."""
    spread = torch.where(inside, -logs / sizes[index].clamp(min=1), torch.zeros_like(logs))
    chosen = torch.where(right, -logs, torch.zeros_like(logs)).sum() / right.sum().clamp(min=1)
    return (1 - smoothing) * chosen + smoothing * spread.sum() / _used(inside, index, len(sizes))


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
