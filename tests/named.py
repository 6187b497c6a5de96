"""Helpers for tests of error messages: check the facts that a message names, not its wording."""

import re
from contextlib import contextmanager

import pytest

from coaltree.errors import InputError


def check_named(sentence, words):
    """Check that a sentence names things, given as words with blanks between: of letters, beginnings will do."""
    for word in words.split():
        end = "" if word.isalpha() else r"(?![\w-]|\.\w)"
        assert re.search(rf"(?<![\w-])(?<!\d\.){re.escape(word)}{end}", sentence, re.IGNORECASE), (word, sentence)


@contextmanager
def refused(words, kind=InputError):
    """Expect an error that names things."""
    assert words.split()
    with pytest.raises(kind) as caught:
        yield caught
    check_named(str(caught.value), words)
