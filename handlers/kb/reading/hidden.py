"""What a report says of text that a document hides from its readers."""

from __future__ import annotations


def hidden_words(count: int) -> tuple[str, ...]:
    """What to say of a document whose hidden text was left out: nobody who reads the file sees it,
    and a model might obey it."""
    words = (
        "1 word that it hides from its readers was"
        if count == 1
        else f"{count} words that it hides from its readers were"
    )
    return (f"{words} left out",) if count else ()
