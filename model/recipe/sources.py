"""The public sources by name: licence, home, and where under the sources folder a copy is expected."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    name: str
    licence: str
    home: str
    path: str
    checked: bool = True  # False: the terms are not stated or were not verified


SOURCES = (
    Source(
        "Super-NaturalInstructions, English tasks",
        "Apache-2.0 collection; every task states its own source licence",
        "github allenai/natural-instructions",
        "natural-instructions/tasks/*.json",
    ),
    Source(
        "English Wikipedia",
        "CC BY-SA 3.0",
        "dumps.wikimedia.org, extracted with WikiExtractor --json",
        "wikipedia/**/wiki_*",
    ),
    Source("Project Gutenberg, English", "public domain (US)", "gutenberg.org", "gutenberg/*.txt"),
    Source(
        "arXiv metadata",
        "CC0 (metadata)",
        "arXiv metadata snapshot (arxiv.org, bulk data)",
        "arxiv/arxiv-metadata-oai-snapshot.json",
    ),
    Source("MDN Web Docs", "CC BY-SA 2.5", "github mdn/content", "mdn/files/en-us/**/*.md"),
    Source(".NET documentation", "CC BY 4.0", "github dotnet/docs", "dotnet/docs/**/*.md"),
    Source("SNLI, dev split", "CC BY-SA 4.0", "nlp.stanford.edu/projects/snli", "snli/snli_1.0_dev.jsonl"),
    Source(
        "Diverse NLI Collection, dev and test splits",
        "not checked",
        "github decompositional-semantics-initiative/DNC",
        "dnc/*/recast_*_data.json",
        checked=False,
    ),
    Source(
        "GoEmotions, train split",
        "Apache-2.0",
        "github google-research/google-research, goemotions",
        "goemotions/train.tsv",
    ),
    Source("CLINC150, train split", "CC BY 3.0", "github clinc/oos-eval", "clinc150/data_full.json"),
    Source(
        "SST-2, train split",
        "not stated",
        "nlp.stanford.edu/sentiment, in the form of the GLUE benchmark",
        "sst2/train.tsv",
        checked=False,
    ),
)
