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
    """Stage 1: language modelling at a constant rate, bounded by tokens, and by time where that is short."""

    window: int = 1_024
    windows_per_step: int = 192
    tokens: int = 1_100_000_000
    seconds: float = float("inf")
    warm_up_steps: int = 120
    validation_windows: int = 384
    muon_rate: float = 0.02
    adam_rate: float = 0.003
    seed: int = 0


@dataclass(frozen=True)
class Decisions:
    """Stage 2: one decay over the decisions, the rate falling in a straight line to zero."""

    rows_per_step: int = 32
    epochs: float = 1.45
    seconds: float = float("inf")  # where time is short the rate falls with it instead
    peak: float = 0.6  # of the stage 1 rates
    warm_up_steps: int = 100
    smoothing: float = 0.06  # of the right answer's share, moved to the wrong one
    group_weight: float = 0.7
    language_weight: float = 1.0  # chat is what this model is for
    compile_blocks: bool = True  # False compiles the network as a whole: slower to start
    seed: int = 3


@dataclass(frozen=True)
class Selection:
    """How much of each kind of decision goes in; a task's share is capped so that none dominates."""

    classification_cap: int = 4_000
    key_task_cap: int = 10_000
    knowledge_cap: int = 1_000
    free_answer_cap: int = 1_000
    dull_cap: int = 150
    passage_shards: int = 12  # of the encyclopedia; the abstracts come on top
    passages_per_shard: int = 10_000
    labelled_times: int = 2
    examples_per_bank_row: int = 14
    examples_per_passage: int = 36
    decision_share: float = 0.4  # of the examples, for the decoder; the encoder takes all
    chat_share: float = 0.8  # of the tasks with free answers, as chats for the decoder
    generated_parts: int = 20
    records_per_part: int = 5_000
    messages_per_part: int = 2_200


@dataclass(frozen=True)
class Finish:
    """`temperature` divides every yes/no margin; chosen on the kept-back banks and tasks."""

    temperature: float = 2.4


@dataclass(frozen=True)
class Recipe:
    """The whole of it. `work` holds everything that is made, `sources` everything that was fetched."""

    work: Path
    sources: Path
    held_out: Path
    processes: int = 12
    name: str = "umpire-chat"
    version: str = "0.2"
    licence: str = "apache-2.0"
    shape: Shape = field(default_factory=Shape)
    selection: Selection = field(default_factory=Selection)
    language: Language = field(default_factory=Language)
    decisions: Decisions = field(default_factory=Decisions)
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
    def banks(self) -> Path:
        return Path(__file__).parent.parent / "banks"

    @property
    def pretrained(self) -> Path:
        """The folder of the pretrained encoder: `model.safetensors` and `vocab.txt`."""
        return self.sources / "all-mpnet-base-v2"

    @property
    def wordpiece(self) -> Path:
        """BERT's uncased vocabulary."""
        return self.sources / "wordpiece" / "tokenizer.json"

    @property
    def kept_back(self) -> Path:
        return self.work / "kept-back"

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
            passages_per_shard=60,
            generated_parts=2,
            records_per_part=300,
            messages_per_part=120,
            examples_per_bank_row=1,
        ),
        language=Language(windows_per_step=8, tokens=400_000, warm_up_steps=5, validation_windows=8),
        decisions=Decisions(rows_per_step=2, warm_up_steps=3),
    )
