"""What each format accepts, what it refuses, and the words and places of refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import ConfigError
from groundhook.host.config.documents import parse_document, read_document

# The sample package of the design this host follows: its `search` has the key `web` twice.
SAMPLE = b"""{
  "name": "My Assistant",
  "connector": "openai",

  // Search configuration (overrides agent/search.yao)
  "search": {
    "web": true, // Enable web search
    "kb": true, // Enable knowledge base search

    // Overrides global web settings
    "web": {
      "provider": "tavily",
      "max_results": 5
    }
  }
}
"""


def test_comments_and_trailing_commas_are_read_over() -> None:
    text = b'/* a */ {"a": [1, 2, /* x */ ], // ,\n "url": "http://x/*y*/", "b": {"c": 1,},}'

    assert parse_document(text, "x.yao").data == {
        "a": [1, 2],
        "url": "http://x/*y*/",
        "b": {"c": 1},
    }


def test_a_key_that_is_there_twice_is_a_warning_at_the_second_and_the_last_holds() -> None:
    document = parse_document(SAMPLE, "assistants/my/package.yao")
    [warning] = document.warnings

    assert document.data["search"]["web"] == {"provider": "tavily", "max_results": 5}
    assert (
        str(warning)
        == "assistants/my/package.yao:11:5: warning: the key 'search.web' occurs twice, first"
        " in line 7; this one counts"
    )
    assert (
        str(document.place(("search", "web", "max_results"))) == "assistants/my/package.yao:13:22"
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text() -> None:
    document = parse_document(b'\xef\xbb\xbf{\r\n// x\r\n  "a": 1\r\n}', "x.yao")

    assert document.data == {"a": 1}
    assert str(document.place(("a",))) == "x.yao:3:8"
    assert parse_document(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "x.yml").data == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "x.yao",
            b'{\n  "a": 1\n  "b": 2\n}',
            "x.yao:3:3: expected ',' or the closing bracket, found '\"'",
        ),
        ("x.yao", b'{\n  // c\n  "a": ,\n}', "x.yao:3:8: expected a value, found ','"),
        (
            "x.yao",
            b"{'a': 1}",
            "x.yao:1:2: expected a key in double quotes (strings need double quotes)",
        ),
        ("x.yao", b"{a: 1}", "x.yao:1:2: expected a key in double quotes, found 'a'"),
        ("x.yao", b'{"a" 1}', "x.yao:1:6: expected ':' after the key, found '1'"),
        ("x.yao", b'{"a": 1', "x.yao:1:8: the file ends before the document does"),
        ("x.yao", b'{"a": "x', "x.yao:1:7: a string without its closing quote"),
        ("x.yao", b'{"a": "x\ny"}', "x.yao:1:9: a line break or control character inside a string"),
        ("x.yao", b'{"a": "\\x"}', "x.yao:1:8: an escape that JSON does not have"),
        ("x.yao", b'{"a": 1} {', "x.yao:1:10: nothing may follow the end of the document"),
        ("x.yao", b'{"a": [,]}', "x.yao:1:8: expected a value, found ','"),
        ("x.yao", b'{"a": [1,,]}', "x.yao:1:10: expected a value, found ','"),
        ("x.yao", b'{"a": 1} /* b', "x.yao:1:10: a comment without its closing */"),
        ("x.yao", b'{"a": [1, NaN]}', "x.yao:1:11: NaN is not a number in JSON"),
        ("x.yao", b'{"b": "NaN", "a": -Infinity}', "x.yao:1:19: -Infinity is not a number in JSON"),
        ("x.yao", b'{"a": 1e999}', "x.yao:1:7: 1e999 is not a number in JSON"),
        ("x.yao", b'{"a": ' + b"9" * 5000 + b"}", "x.yao:1:7: a number with too many digits"),
        ("x.yao", b'{"a": "\\ud83d"}', "x.yao:1:7: half of a surrogate pair in a string"),
        ("x.yao", b"[" * 100_000, "x.yao:1:1: nested too deeply"),
        ("x.yao", b"", "x.yao:1:1: empty, it should hold an object"),
        ("x.yao", b"// nothing\n", "x.yao:2:1: the file ends before the document does"),
        ("x.yao", b" [1]", "x.yao:1:2: should hold an object, not a list"),
        ("x.yml", b"# c\ntext", "x.yml:2:1: should hold an object, not text"),
        ("x.yao", b'{\n"a": "\xe9"}', "x.yao:2: not UTF-8: byte 0xe9 (save the file as UTF-8)"),
        (
            "x.yao",
            '{"a": 1}'.encode("utf-16"),
            "x.yao:1: not UTF-8: byte 0xff (save the file as UTF-8)",
        ),
        (
            "x.json",
            b'{"a": 1 // c\n}',
            "x.json:1:9: a .json file has no comments (name it .jsonc or .yao to comment it)",
        ),
        (
            "x.toml",
            b"a = 1",
            (
                "x.toml: this format is not supported (known endings: .yao, .jsonc, .json, .yml,"
                " .yaml)"
            ),
        ),
        ("x.yml", b"a: 1\nb: 2\na: 3", "x.yml:3:1: the key 'a' occurs twice"),
        ("x.yml", b"a: [1\nb: 2", "x.yml:2:2: "),
        (
            "x.yml",
            b"a:\n\tb: 1",
            (
                "x.yml:2:1: found character '\\t' that cannot start any token (YAML is indented"
                " with spaces)"
            ),
        ),
        (
            "x.yml",
            b"a: note: b",
            (
                "x.yml:1:8: mapping values are not allowed here (a text with a colon and a blank"
                " needs quotes)"
            ),
        ),
        (
            "x.yml",
            b"a: 1\n---\nb: 2",
            "x.yml:2:1: but found another document (one document to a file)",
        ),
        ("x.yml", b"1: a", "x.yml:1:1: a key must be text (put it in quotes)"),
        (
            "x.yml",
            b"a: !private x",
            "x.yml:1:4: the tag '!private' is not supported (plain values only)",
        ),
        ("x.yml", b"a: .nan", "x.yml:1:4: .nan is not a finite number"),
        (
            "x.yml",
            b"a: &a {b: 1}\nc:\n  <<: *a",
            "x.yml:3:3: YAML 1.2 has no merge keys ('<<') (write the keys out)",
        ),
        ("x.yml", b"a: \x01", "x.yml:1:4: a character that YAML does not allow"),
        ("x.yml", b"a: &a [*a]", "x.yml:1:1: nested too deeply"),
    ],
)
def test_unreadable_files_are_reported_with_their_place(
    file: str, text: bytes, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, file)

    assert str(caught.value).startswith(message)


def test_strict_json_takes_no_trailing_comma() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(b'{"a": 1,}', "x.json")

    assert str(caught.value.place).startswith("x.json:1:")


def test_anchors_cannot_make_a_small_text_endless() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="more than 200,000 values"):
        parse_document("\n".join(lines).encode(), "x.yml")


def test_yaml_means_what_version_1_2_says_and_dates_stay_text() -> None:
    text = b"a: on\nb: no\nc: 010\nd: 2024-01-31\ne: ~\nf: 1e3\ng: true\nh: 0x1F\n"

    assert parse_document(text, "x.yml").data == {
        "a": "on", "b": "no", "c": 10, "d": "2024-01-31", "e": None, "f": 1000.0, "g": True, "h": 31
    }  # fmt: skip


def test_a_yaml_file_that_is_empty_or_all_comments_says_nothing() -> None:
    assert parse_document(b"# connector: x\n", "x.yml").data == {}
    assert parse_document(b" \n", "x.yml").data == {}
    assert parse_document(b"", "x.yml", top="list").data == []
    assert parse_document(b"# - role\n", "x.yml", top="list").data == []


def test_a_file_that_is_not_there_or_is_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^no\.yao: cannot be read: No such file or directory$"):
        read_document(tmp_path / "no.yao", "no.yao")
    with pytest.raises(ConfigError, match=r"^x\.yao: cannot be read: Is a directory$"):
        read_document(tmp_path, "x.yao")


@given(
    st.binary(max_size=60)
    | st.text(st.sampled_from('{}[]",:/*\\u0a1 \n#-&!<>|'), max_size=40).map(str.encode)
)
def test_no_content_whatever_raises_anything_but_an_error_with_a_place(raw: bytes) -> None:
    for file in ("x.yao", "x.json", "x.yml"):
        places = []
        try:
            document = parse_document(raw, file, top="any")
            places += [document.place(("a", 0)), *(warning.place for warning in document.warnings)]
        except ConfigError as exc:
            places.append(exc.place)
        assert all(place is not None and place.file == file for place in places)
