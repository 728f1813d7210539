"""reStructuredText: headings, and what roles and directives show."""

from __future__ import annotations

import pytest

from groundhook.handlers.kb.reading.files import read

TEXT = """\
Backups of tapes
================

.. contents::

Tapes rotate every :ref:`seven weeks <tape-plan>`, see :class:`~bk.tapes.Plan` and :setting:`rotate`.

Rotation
--------

.. versionadded:: 5.1

Ten is 10\\ :sup:`1`.

.. code-block:: sh
   :caption: run it

   bk rotate

.. note::

   Label each tape.

.. setting:: task_acks_late
   :since: 5

   Late is safe.

====  ====
Tape  Week
====  ====
A     7
====  ====

.. toctree::

   other
"""


def test_headings_and_tables_are_those_of_the_page() -> None:
    document = read(TEXT.encode(), "a.rst")
    headings = [(block.level, block.name) for block in document.blocks if block.kind == "heading"]
    assert document.title == "Backups of tapes"
    assert headings == [(1, "Backups of tapes"), (2, "Rotation")]
    assert "| Tape | Week |\n| --- | --- |\n| A | 7 |" in document.text


def test_roles_and_directives_are_their_text() -> None:
    text = read(TEXT.encode(), "a.rst").text
    assert "Tapes rotate every seven weeks, see Plan and rotate." in text
    assert "Added in version 5.1" in text
    assert "Label each tape." in text
    assert "Late is safe." in text
    assert "bk rotate" in text
    assert not [mark for mark in (":ref:", "::", "toctree", "other", ":since:") if mark in text]


@pytest.mark.parametrize(
    "line",
    [
        ".. include:: /etc/hostname",
        ".. raw:: html\n   :file: /etc/hostname",
        ".. csv-table::\n   :file: /etc/hostname",
    ],
)
def test_no_other_file_is_read(line: str) -> None:
    assert read(f"Text.\n\n{line}\n".encode(), "a.rst").text.strip() == "Text."


def test_a_text_that_is_wrong_in_places_is_read() -> None:
    text = (
        "A\n=\n\n:nope:`x` and :also:nope:`y`, *open\n\n.. nope:: arg\n\n   Inside.\n\nShort\n--\n"
    )
    read_as = read(text.encode(), "a.rst").text
    assert "x and y" in read_as
    assert "Inside." in read_as


def test_the_mark_of_a_picture_without_words_is_no_text() -> None:
    text = read(
        b"Hi |Logo| and |Map|.\n\n.. |Logo| image:: a.png\n.. |Map| image:: b\n   :alt: World\n",
        "a.rst",
    ).text
    assert " ".join(text.split()) == "Hi and World."
