"""A kept conversation as Markdown."""

from __future__ import annotations

from markdown_it import MarkdownIt

from groundhook.core.types.chats import Chat, ChatMessage, KeptAnswer, KeptCitation
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.markdown import exported

PASSAGE = """| tea | minutes |
| --- | --- |
| Assam | 4 |

```py
brew("<script>")
```
[a](javascript:alert(1))"""


def test_a_passage_stays_as_it_was_read_and_is_no_markup() -> None:
    item = Item(type="kb", title="Teas [x]", content=PASSAGE, citation_id="#ref:ab12")
    citation = KeptCitation(marker="#ref:ab12", verdict="ok", item=item, places=(11,))
    answer = KeptAnswer(content="Four, says #ref:ab12.", citations=(citation,), complete=True)
    path = [
        ChatMessage(id="m1", chat_id="c", role="user", content="How long?"),
        ChatMessage(id="m2", chat_id="c", role="assistant", answer=answer),
    ]
    text = exported(Chat(id="c", assistant_id="tea"), path, name="Tea")
    assert "Four, says [^1]." in text
    _, _, note = text.partition("[^1]: ")
    title, _, passage = note.partition("\n\n")
    assert title == "Teas \\[x\\]"
    assert "\n".join(line[8:] for line in passage.splitlines()) == PASSAGE
    # A reader without footnotes sees the indented lines as code as well.
    shown = MarkdownIt().render(passage)
    assert "<script>" not in shown
    assert "href" not in shown
    assert shown.startswith("<pre><code>")
