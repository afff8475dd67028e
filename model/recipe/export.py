"""Writes a checkpoint as the GGUF file that llama.cpp loads: architecture `qwen3`, tokenizer `gpt2`/`qwen2`."""
import json
from pathlib import Path
from typing import Any, Iterator

import numpy

from .config import Recipe, Shape
from .gguf_format import FILE_TYPES, TensorType, ValueType
from .gguf_writer import Entry, Tensor, write_gguf
from .tokenizer import END_OF_TEXT, TURN_END

ARCHITECTURE = "qwen3"
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NORMAL, CONTROL, UNUSED = 1, 3, 5  # llama.cpp's token types
MATRIX_TYPES = {"f32": TensorType.F32, "f16": TensorType.F16, "q8_0": TensorType.Q8_0}


def export(recipe: Recipe, stage: str, quantization: str) -> Path:
    """Exports a checkpoint; answers where the file is."""
    import torch

    saved = torch.load(recipe.checkpoint(stage), map_location="cpu", weights_only=True)
    shape = Shape(**saved["shape"])
    weights = {name: tensor.float().numpy() for name, tensor in saved["weights"].items()}
    tokenizer = json.loads(recipe.tokenizer.read_text(encoding="utf8"))
    path = recipe.weights(quantization)
    entries = [
        *model_entries(recipe, shape, quantization),
        *tokenizer_entries(tokenizer, shape.vocabulary),
        Entry("tokenizer.chat_template", ValueType.STRING, CHAT_TEMPLATE),
    ]
    write_gguf(path, entries, list(tensors(weights, shape, MATRIX_TYPES[quantization])))
    print(f"export: {path.name}, {path.stat().st_size / 1e6:.1f} MB", flush=True)
    return path


def model_entries(recipe: Recipe, shape: Shape, quantization: str) -> Iterator[Entry]:
    texts = {
        "general.architecture": ARCHITECTURE,
        "general.name": recipe.name,
        "general.version": recipe.version,
        "general.type": "model",
        "general.description": "Small model for yes/no decisions over evidence text",
    }
    counts = {
        "general.file_type": FILE_TYPES[quantization],
        "general.quantization_version": 2,
        f"{ARCHITECTURE}.block_count": shape.layers,
        f"{ARCHITECTURE}.context_length": shape.context,
        f"{ARCHITECTURE}.embedding_length": shape.width,
        f"{ARCHITECTURE}.feed_forward_length": shape.feed_forward,
        f"{ARCHITECTURE}.attention.head_count": shape.heads,
        f"{ARCHITECTURE}.attention.head_count_kv": shape.kv_heads,
        f"{ARCHITECTURE}.attention.key_length": shape.head_width,
        f"{ARCHITECTURE}.attention.value_length": shape.head_width,
        f"{ARCHITECTURE}.vocab_size": shape.vocabulary,
    }
    reals = {
        f"{ARCHITECTURE}.rope.freq_base": shape.rope_base,
        f"{ARCHITECTURE}.attention.layer_norm_rms_epsilon": shape.norm_epsilon,
    }
    yield from (Entry(key, ValueType.STRING, value) for key, value in texts.items())
    yield from (Entry(key, ValueType.UINT32, value) for key, value in counts.items())
    yield from (Entry(key, ValueType.FLOAT32, value) for key, value in reals.items())


def tokenizer_entries(tokenizer: dict[str, Any], vocabulary: int) -> Iterator[Entry]:
    """The tokenizer file's vocabulary and merges; ids that it leaves free become unused tokens."""
    tokens, kinds = [f"[unused{n}]" for n in range(vocabulary)], [UNUSED] * vocabulary
    for token, number in tokenizer["model"]["vocab"].items():
        tokens[number], kinds[number] = token, NORMAL
    special = {added["content"]: added["id"] for added in tokenizer["added_tokens"]}
    for token, number in special.items():
        tokens[number], kinds[number] = token, CONTROL
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    yield Entry("tokenizer.ggml.model", ValueType.STRING, "gpt2")
    yield Entry("tokenizer.ggml.pre", ValueType.STRING, "qwen2")
    yield Entry("tokenizer.ggml.tokens", ValueType.STRING, tokens)
    yield Entry("tokenizer.ggml.token_type", ValueType.INT32, kinds)
    yield Entry("tokenizer.ggml.merges", ValueType.STRING, merges)
    yield Entry("tokenizer.ggml.bos_token_id", ValueType.UINT32, special[END_OF_TEXT])
    yield Entry("tokenizer.ggml.eos_token_id", ValueType.UINT32, special[TURN_END])
    yield Entry("tokenizer.ggml.padding_token_id", ValueType.UINT32, special[END_OF_TEXT])
    yield Entry("tokenizer.ggml.add_bos_token", ValueType.BOOL, False)
    yield Entry("tokenizer.ggml.add_eos_token", ValueType.BOOL, False)


def tensors(weights: dict[str, numpy.ndarray], shape: Shape, kind: TensorType) -> Iterator[Tensor]:
    """llama.cpp's tensors: fused projections are taken apart, vectors stay F32."""
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    yield Tensor("token_embd.weight", weights["embedding.weight"], kind)
    yield Tensor("output_norm.weight", weights["norm"], TensorType.F32)
    for layer in range(shape.layers):
        part = {
            name.removeprefix(f"blocks.{layer}."): w
            for name, w in weights.items()
            if name.startswith(f"blocks.{layer}.")
        }
        q, k, v = numpy.split(part["qkv.weight"], [query, query + key])
        gate, up = numpy.split(part["gate_up.weight"], [shape.feed_forward])
        vectors = {
            "attn_norm": part["attention_norm"],
            "attn_q_norm": part["query_norm"],
            "attn_k_norm": part["key_norm"],
            "ffn_norm": part["feed_norm"],
        }
        matrices = {
            "attn_q": q,
            "attn_k": k,
            "attn_v": v,
            "attn_output": part["attention_out.weight"],
            "ffn_gate": gate,
            "ffn_up": up,
            "ffn_down": part["down.weight"],
        }
        for name, values in vectors.items():
            yield Tensor(f"blk.{layer}.{name}.weight", values, TensorType.F32)
        for name, values in matrices.items():
            yield Tensor(f"blk.{layer}.{name}.weight", values, kind)
