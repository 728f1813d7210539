"""Variables in the strings of files: put in, missing, and never shown."""

from __future__ import annotations

import os

import pytest

from groundhook.core.errors import ConfigError
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.host.config.documents import parse_document
from groundhook.host.config.environment import expand, process_environment
from groundhook.host.config.validate import check_document, read_value

TEXT = b"""{
  "type": "openai",
  "options": {"host": "https://$ENV.HOST/v1", "key": "$ENV.KEY", "headers": {"X-Key": "a $ENV.KEY b"}}
}"""


def test_variables_are_put_in_as_the_whole_of_a_text_and_inside_one() -> None:
    spec = read_value(
        ConnectorSpec, parse_document(TEXT, "x.conn.yao"), {"HOST": "example.org", "KEY": "s3cret"}
    )

    assert (spec.options.host, spec.options.key, spec.options.headers) == (
        "https://example.org/v1",
        "s3cret",
        {"X-Key": "a s3cret b"},
    )


def test_the_value_of_a_variable_is_text_and_not_expanded_again() -> None:
    document = parse_document(b'{"a": "$ENV.A"}', "x.yao")

    assert expand(document, {"A": "$ENV.B", "B": "no"}) == {"a": "$ENV.B"}
    assert document.data == {"a": "$ENV.A"}


def test_a_number_may_come_from_a_variable() -> None:
    spec = read_value(
        ConnectorSpec,
        parse_document(b'{"type": "openai", "options": {"retries": "$ENV.N"}}', "x.yao"),
        {"N": "4"},
    )

    assert spec.options.retries == 4


def test_a_variable_that_is_not_set_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        read_value(ConnectorSpec, parse_document(TEXT, "x.conn.yao"), {"HOST": "example.org"})

    assert str(caught.value).splitlines() == [
        (
            "x.conn.yao:3:54: 'options.key' needs the environment variable 'KEY', which is not set"
            " (set KEY)"
        ),
        (
            "x.conn.yao:3:87: 'options.headers.X-Key' needs the environment variable 'KEY', which"
            " is not set (set KEY)"
        ),
    ]


def test_a_variable_that_is_not_set_is_only_a_warning_for_a_check() -> None:
    checked = check_document(ConnectorSpec, parse_document(TEXT, "x.conn.yao"), {"HOST": "x"})

    assert checked.errors == ()
    assert {
        (problem.severity, problem.place and problem.place.line) for problem in checked.findings()
    } == {("warning", 3)}


def test_no_message_shows_what_a_variable_holds() -> None:
    document = parse_document(b'{"type": "openai", "options": {"retries": "$ENV.KEY"}}', "x.yao")
    with pytest.raises(ConfigError) as caught:
        read_value(ConnectorSpec, document, {"KEY": "s3cret"})

    assert "s3cret" not in str(caught.value)
    assert "'$ENV.KEY'" in str(caught.value)


def test_the_environment_of_the_process_is_a_copy() -> None:
    environment = process_environment()

    assert environment == dict(os.environ)  # noqa: TID251 - what is compared with
    assert environment is not os.environ  # noqa: TID251
