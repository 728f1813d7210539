"""`groundhook config explain` for one setting, and in a pipe."""

from __future__ import annotations

from tests.cli.conftest import Groundhook
from tests.conftest import MakeApp


def test_a_setting_is_explained_alone_and_nothing_is_padded_in_a_pipe(
    groundhook: Groundhook, make_app: MakeApp
) -> None:
    root = make_app({"assistants/a/package.yao": '{"search": {"web": {"max_results": 3}}}'})
    shown = groundhook("config", "explain", "a", "search.web.max_results", "--app", str(root))
    assert shown.out == ("search.web.max_results\t3\tassistant\tassistants/a/package.yao:1:36\n")
    section = groundhook("config", "explain", "a", "search.keyword", "--app", str(root))
    assert [line.split("\t")[0] for line in section.out.splitlines()] == [
        "search.keyword.max_keywords",
        "search.keyword.language",
        "search.keyword.timeout_ms",
    ]
    wrong = groundhook("config", "explain", "a", "search.wbe.fetch", "--app", str(root))
    assert wrong.code != 0
    assert "no setting 'search.wbe.fetch' (did you mean 'search.web.fetch'?)" in wrong.err
