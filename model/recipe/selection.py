"""Which tasks of the instruction collection may go into the weights: by licence, and by what is held out.

The first release let a few tasks in by mistake; `CLOSED_TASK` and the last lines of `CLOSED_LICENCE` name them.
"""
import re

# Stated terms that forbid commercial use, or that are terms of their own that were not verified.
CLOSED_LICENCE = re.compile(
    r"\bNC\b|-NC|LDC|Amazon License|yelp|RACE license|AG_corpus|gulli|Quora|Academic License|Microsoft Research"
    r"|MSR-LA|msmarco|recipenlg|Brown|icame|Data files"
    r"|non-?commercial"
    r"|nlpdata/(?:dream|dialogre)|semeval-2019-task-10|codalab|multirc",
    re.I,
)

# The same exclusions by task name, so that a reworded licence field does not let them back in.
CLOSED_TASK = re.compile(
    r"^task248_|^task90[6-9]_|^task49[56]_|dream|dialogre|multirc|semeval_2019_task10|semeval_headline", re.I
)

# Tasks built on a set that the evaluation keeps for zero-shot measurement.
HELD_OUT_TASK = re.compile(
    r"agnews|ag_news|trec_|smsspam|financial_phrasebank|glue_entailment|rte|boolq|super_glue|olid"
    r"|semeval_2018_task[13]|hateeval|stancedetection|imdb|strategyqa|feverous|banking|clinc"
    r"|newsgroup|bbc|conjnli|control_nli|tweeteval|goemotion|twitter_emotion|task875_emotion|yahoo_answers|wellformed"
    r"|deceptive_opinion|snips|hwu|hans|help_nli|hate_speech_offensive|task90[45]_",
    re.I,
)

# Its answers do not fit its definition.
BROKEN_TASK = re.compile(r"^task189_")

# String puzzles and tagging, large in number and of little use here: kept, but capped low.
DULL_TASK = re.compile(
    r"pos_tagging|penn_treebank|count_vowels|swap_words|maximum_ascii|leetcode|mathqa|jumbled|reverse|rot13|caesar"
    r"|list_|_list|array|fibonacci|hybridqa_(?:in)?correct_answer|closest_integers|hybridqa_answer_generation"
)


def refusal(task: str, licences: list[str], include_unknown: bool = True) -> str | None:
    """Why a task stays out; None when it may go in."""
    stated = " ".join(licences) or "Unknown"
    if CLOSED_LICENCE.search(stated) or CLOSED_TASK.search(task):
        return "licence"
    if not include_unknown and stated.strip().lower() == "unknown":
        return "unknown licence"
    if HELD_OUT_TASK.search(task):
        return "held out"
    if BROKEN_TASK.search(task):
        return "broken"
    return None


def is_dull(task: str) -> bool:
    return bool(DULL_TASK.search(task))
