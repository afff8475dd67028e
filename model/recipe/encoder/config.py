"""Every number of the encoder's recipe."""
from dataclasses import dataclass

# After training, chosen on the choices of the kept-back banks: how much of the tuned cosine's weight stays, and how much the
# recalled cosine counts.
TUNED_SHARE, RECALLED_WEIGHT = 1.0, 0.0
# Of the weights that the training began from, where those were tuned ones, in the average that is shipped.
START_SHARE = 0.0


@dataclass(frozen=True)
class Network:
    """The shape of MPNet base. Of its 512 positions evidence counts round in the first, branches in the rest.

    What differs between networks of this kind stands here or in their weights.
    """

    vocabulary: int = 30_522
    layers: int = 12
    width: int = 768
    heads: int = 12
    feed_forward: int = 3_072
    epsilon: float = 1e-5
    evidence_positions: int = 384
    branch_positions: int = 128
    dropout: float = 0.1
    is_relative: bool = True
    # Of each number in the table of tokens. With four they are never trained: they stay those of the pretrained file.
    token_bits: int = 8
    # Where the cosines of the pretrained network lie, and how far apart: those of evidence and option from 0 to 0.8.
    similarity_scale: float = 12.0
    similarity_centre: float = 0.25

    @property
    def positions(self) -> int:
        return self.evidence_positions + self.branch_positions


# gte-small: cosines of about 0.78 with a deviation of 0.04.
SMALL = Network(
    width=384, feed_forward=1_536, epsilon=1e-12, dropout=0.05, is_relative=False, similarity_scale=40.0, similarity_centre=0.8
)


# multilingual-e5-small: cosines of about 0.84 with a deviation of 0.03; "query: " before every text, as it was pretrained, is left out since
# options are told apart as well without (0.49 and 0.51 of 96 choices in eight languages). Its tokens are counted by `multilingual.py`.
MULTILINGUAL = Network(
    vocabulary=219_598,
    width=384,
    feed_forward=1_536,
    epsilon=1e-12,
    dropout=0.05,
    is_relative=False,
    token_bits=4,
    similarity_scale=40.0,
    similarity_centre=0.84,
)


@dataclass(frozen=True)
class Rows:
    length: int = 4_096
    parts: int = 32
    evidence_characters_max: int = 16_000
    evidence_tokens_max: int = 3_000
    branch_tokens_max: int = 200
    option_tokens_max: int = 48


@dataclass(frozen=True)
class Mixture:
    """Which of the kinds of rows a step reads: shares of the steps."""

    general: float = 0.22
    close: float = 0.41  # texts and questions like those of callers
    contrast: float = 0.37  # groups of texts that differ in little
    languages: float = 0.0  # other languages than English


@dataclass(frozen=True)
class Training:
    """The rate falls in a straight line to zero over `seconds`; each layer below the last has `layer_decay` of the rate above.

    4e-4 for all layers damaged what was pretrained: 77 intents were told apart less well (0.34) than by the untouched
    vectors alone (0.65).
    """

    seconds: float = 1_150.0
    rows_per_step: int = 32
    rate: float = 6e-5
    layer_decay: float = 0.92
    warm_up_steps: int = 100
    mixture: Mixture = Mixture()
    contrast_from: float = 0.0  # until this share of the time its steps read close rows: first a branch is to be read at all
    hidden_share: float = 0.06  # of the words of the evidence, in half of the rows; never of contrast groups
    smoothing: float = 0.03
    group_weight: float = 0.8
    similarity_weight: float = 0.3
    ordinal_weight: float = 1.0
    pair_weight: float = 1.0
    law_weight: float = 3.0
    # Of a teacher's margins; all zero: there is none. What they are is said in `losses.py`.
    margin_weight: float = 0.0
    share_weight: float = 0.0
    apart_weight: float = 0.0
    average: float = 0.998
    compiled: bool = True  # costs two minutes and doubles the speed
    weight_decay: float = 0.01
    save_every_seconds: float = 240.0
    seeds: tuple[int, ...] = (7,)  # a training each; their weights are averaged

    @property
    def is_taught(self) -> bool:
        return self.margin_weight + self.share_weight + self.apart_weight > 0


@dataclass(frozen=True)
class Model:
    """A network, how it is trained, and the network whose margins teach it where it is taught."""

    shape: Network
    training: Training
    teacher: Network = Network(dropout=0.0)
    # Its tokens are pieces of any script (Unigram) instead of BERT's, so that its teacher reads rows of its own.
    is_multilingual: bool = False

    @property
    def has_twins(self) -> bool:
        return self.is_multilingual and self.training.is_taught


# By the names of the files that they become.
MODELS = {
    "umpire-decide": Model(Network(), Training()),
    "umpire-decide-small": Model(
        SMALL,
        Training(
            seconds=600.0,
            rate=2e-4,
            hidden_share=0.04,
            mixture=Mixture(general=0.24, close=0.42, contrast=0.34),
            margin_weight=0.5,
            share_weight=1.5,
            apart_weight=0.5,
            save_every_seconds=100.0,
        ),
    ),
    "umpire-decide-multilingual": Model(
        MULTILINGUAL,
        Training(
            seconds=1_400.0,
            rate=4e-4,
            warm_up_steps=200,
            hidden_share=0.04,
            mixture=Mixture(general=0.2, close=0.41, contrast=0.26, languages=0.13),
            contrast_from=0.3,
            margin_weight=0.5,
            share_weight=1.5,
            apart_weight=0.5,
            save_every_seconds=100.0,
        ),
        is_multilingual=True,
    ),
}
