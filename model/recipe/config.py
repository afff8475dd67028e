"""Every number of the recipe in one place; a stage reads its own part and nothing else."""
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Shape:
    """The network, in the layout that llama.cpp calls `qwen3`."""

    vocabulary: int = 16_384
    width: int = 512
    layers: int = 16
    heads: int = 8
    kv_heads: int = 4
    head_width: int = 64
    feed_forward: int = 1_536
    rope_base: float = 100_000.0
    context: int = 4_096
    norm_epsilon: float = 1e-6


@dataclass(frozen=True)
class Language:
    """Stage 1: language modelling at a constant rate, bounded by tokens."""

    window: int = 1_024
    windows_per_step: int = 192
    tokens: int = 582_000_000
    warm_up_steps: int = 120
    validation_windows: int = 384
    muon_rate: float = 0.02
    adam_rate: float = 0.003
    seed: int = 0


@dataclass(frozen=True)
class Decisions:
    """Stage 2: decision tuning, the rate falling in a straight line to zero."""

    rows_per_step: int = 32
    epochs: float = 1.0
    peak: float = 0.6  # of the stage 1 rates
    warm_up_steps: int = 60
    keep_optimizer: bool = True
    group_weight: float = 0.7
    language_weight: float = 0.25
    seed: int = 3


@dataclass(frozen=True)
class Selection:
    """How much of each kind of decision goes in; a task's share is capped so that none dominates."""

    include_unknown_licences: bool = True  # 328 tasks of the instruction collection state none
    include_unchecked_sets: bool = True  # labelled sets whose terms are not stated: DNC, SST-2
    classification_cap: int = 2_600
    key_task_cap: int = 10_000
    knowledge_cap: int = 1_000
    free_answer_cap: int = 700
    dull_cap: int = 250
    passages_per_shard: int = 4_500
    generated_parts: int = 16
    records_per_part: int = 5_000
    messages_per_part: int = 2_200


@dataclass(frozen=True)
class Finish:
    """The two decision runs averaged, then softened; `temperature` divides every yes/no margin."""

    first_share: float = 0.5
    temperature: float = 1.6


@dataclass(frozen=True)
class Recipe:
    """The whole of it. `work` holds everything that is made, `sources` everything that was fetched."""

    work: Path
    sources: Path
    held_out: Path
    processes: int = 12
    name: str = "umpire-nano"
    version: str = "2"
    shape: Shape = field(default_factory=Shape)
    selection: Selection = field(default_factory=Selection)
    language: Language = field(default_factory=Language)
    first_decisions: Decisions = field(default_factory=Decisions)
    second_decisions: Decisions = field(
        default_factory=lambda: Decisions(epochs=1.57, peak=0.4, keep_optimizer=False, seed=4)
    )
    finish: Finish = field(default_factory=Finish)

    @property
    def shards(self) -> Path:
        return self.work / "shards"

    @property
    def tokenizer(self) -> Path:
        return self.work / "tokenizer.json"

    @property
    def corpus(self) -> Path:
        return self.work / "corpus"

    @property
    def rows(self) -> Path:
        return self.work / "rows"

    def checkpoint(self, stage: str) -> Path:
        return self.work / "checkpoints" / f"{stage}.pt"

    def weights(self, quantization: str) -> Path:
        return self.work / f"{self.name}-{quantization}.gguf"


TINY_SHAPE = Shape(
    vocabulary=16_384, width=64, layers=2, heads=2, kv_heads=1, head_width=32, feed_forward=128, context=4_096
)


def rehearsal(work: Path, sources: Path, held_out: Path) -> Recipe:
    """A run of a few minutes on little data: it proves that the stages fit together, not that the model is good."""
    return Recipe(
        work=work,
        sources=sources,
        held_out=held_out,
        processes=2,
        shape=TINY_SHAPE,
        selection=Selection(
            passages_per_shard=60, generated_parts=2, records_per_part=300, messages_per_part=120
        ),
        language=Language(windows_per_step=8, tokens=400_000, warm_up_steps=5, validation_windows=8),
        first_decisions=Decisions(rows_per_step=2, warm_up_steps=3),
        second_decisions=Decisions(
            rows_per_step=2, warm_up_steps=3, epochs=0.5, peak=0.4, keep_optimizer=False
        ),
    )
