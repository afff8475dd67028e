"""Trains the byte-level BPE tokenizer, in the form that llama.cpp reads as `gpt2` with the pre-tokeniser `qwen2`."""
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from .config import Recipe
from .corpus import SOURCE_NAMES, read_documents
from .shards import list_shards

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = [END_OF_TEXT, TURN_START, TURN_END]

# llama.cpp's pattern of that name: words with one leading mark, single digits, runs of punctuation.
QWEN2_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHARES = {"wikipedia": 0.2, "gutenberg": 0.12, "arxiv": 0.1, "instructions": 0.09, "documentation": 0.1}
DOCUMENT_CHARACTERS_MAX = 20_000

# The answers must be one token each, and the fixed words of the prompt cheap.
PROMPT_PHRASES = [
    "yes\n",
    "no\n",
    "\nyes",
    "\nno",
    "assistant\nyes\n",
    "assistant\nno\n",
    "user\n",
    "Answer yes or no.",
    "Proposed answer: ",
    "Is the proposed answer correct?",
    "Proposed rating:",
]
PROMPT_REPEATS = 3_000


def train_tokenizer(recipe: Recipe) -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    jobs = [
        (recipe.shards, path, SHARES[name])
        for name in SOURCE_NAMES
        for path in list_shards(recipe.shards, name)
    ]
    with ProcessPoolExecutor(recipe.processes) as pool:
        sample = [text for part in pool.map(_sample, jobs) for text in part]
    sample += PROMPT_PHRASES * PROMPT_REPEATS
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.shape.vocabulary,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer)
    yes, no = (tokenizer.encode(word, add_special_tokens=False).ids for word in ("yes", "no"))
    if len(yes) != 1 or len(no) != 1:
        raise SystemExit(
            "Cannot use this tokenizer: yes and no must be one token each; train it on more text"
        )
    tokenizer.save(str(recipe.tokenizer))
    print(f"tokenizer: {tokenizer.get_vocab_size()} tokens, yes {yes[0]}, no {no[0]}", flush=True)


class Encoder:
    """Text to token ids; special tokens are recognised, so evidence must be free of them or be stripped first."""

    def __init__(self, path: Path) -> None:
        # The pool of processes is the parallelism; threads inside each would only contend.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        self.end_of_text: int = self._tokenizer.token_to_id(END_OF_TEXT)
        self.yes: int = self._single("yes")
        self.no: int = self._single("no")

    def ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _single(self, word: str) -> int:
        (token,) = self.ids(word)
        return token


def _sample(job: tuple[Path, Path, float]) -> list[str]:
    shards, path, share = job
    rng = Random(path.name)
    return [
        text.replace(TURN_START, "").replace(TURN_END, "")[:DOCUMENT_CHARACTERS_MAX]
        for text in read_documents(shards, path)
        if rng.random() < share
    ]
