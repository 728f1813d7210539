"""Text that grows by pieces, such as an answer of a megabyte that arrives word by word. Pure.

`text + piece` copies the whole text for each piece. Here a piece is joined with the last ones as
soon as it is half as long as they are, so that a character is copied a few times in all.
"""

from __future__ import annotations

TextPieces = tuple[str, ...]  # the text is "".join(pieces)


def grown(pieces: TextPieces, text: str) -> TextPieces:
    """Return the pieces with more text. There are at most as many as a length has binary digits."""
    while pieces and len(pieces[-1]) < 2 * len(text):
        text, pieces = pieces[-1] + text, pieces[:-1]
    return (*pieces, text) if text else pieces


def last_of(pieces: TextPieces, length: int) -> str:
    """Return the last `length` characters of the text, or all that there are."""
    text = ""
    for piece in reversed(pieces):
        text = piece[-(length - len(text)) :] + text
        if len(text) >= length:
            break
    return text
