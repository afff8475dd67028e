"""Generated groups of texts that differ in a word, a clause or a number, with answers computed from a small world model.

`groups(seed, count)` yields dictionaries in the form of the written contrast groups, with a `template` on top:
family/situation/wording, so that whole templates can be kept back.
"""
from .build import TEMPLATES, groups

__all__ = ["TEMPLATES", "groups"]
