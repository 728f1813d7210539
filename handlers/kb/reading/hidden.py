"""The note of a report about text that a document hides from its readers."""

from __future__ import annotations


def hidden_words(count: int) -> tuple[str, ...]:
    """Return the note for a document whose hidden text was omitted. Hidden text is never added: no
    reader of the file sees it, and a model might follow instructions in it."""
    words = (
        "1 word that it hides from its readers was"
        if count == 1
        else f"{count} words that it hides from its readers were"
    )
    return (f"{words} omitted",) if count else ()
