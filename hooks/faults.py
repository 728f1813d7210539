"""Makes HookErrors of the reports of JavaScript, each with its place in the author's file: maps
stack traces to sources, and words the messages. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from groundhook.core.errors import (
    HookError,
    HookLimit,
    HookReturnInvalid,
    HookSyntaxError,
    HookThrew,
    Place,
)
from groundhook.core.hook_tests import UNCAUGHT
from groundhook.core.settings import HookLimits
from groundhook.core.types.base import dotted, validation_problems
from groundhook.hooks.program import HookProgram
from groundhook.hooks.wire import from_v8

_TARGETS = ("server", "mcp", "server_id", "agent", "connector", "type")
_FRAME = re.compile(
    r"^[ \t]*+at (?:(?P<name>.*?) \()?hook:(?P<index>\d+):(?P<line>\d+):(?P<column>\d+)\)?$",
    re.MULTILINE,
)
_MENTION = re.compile(r"hook:(\d+):(\d+):(\d+)")
_PARSE = re.compile(r"^[^\n]{0,300}?:(\d+): (.*)\n(.*)\n( *)\^")

# a frame of the prelude
_PRELUDE_FRAME = re.compile(r"\n[ \t]++at (?:[\w.<> ]+ \()?<anonymous>:\d+:\d+\)?(?=\n|$)")
_ARGUMENT = re.compile(r"\[(\d+)\](.*)", re.DOTALL)
_IMPORTED = re.compile(r"\(0 , \w+\.(\w+)\)")  # how the compiler calls a function of another file
_NOT_OFFERED = re.compile(
    r"\w\.(?P<key>\w{1,80}) is not offered by this host: there are (?P<known>[\w, ]+)$"
)

LONGEST_LINE = 1000  # characters
MOST_WRONG = 5  # wrong values that one error lists

Steps = tuple[str | int, ...]  # from a value to one inside

MEANING = {
    "cpu_ms": "computed for more than {value} ms",
    "wall_ms": "took more than {value} ms in all",
    "call_ms": "made a host call that took more than {value} ms",
    "heap_mb": "used more than {value} MB of JavaScript heap",
    "memory_mb": "made its process grow by more than {value} MB",
    "calls": "made more than {value} host calls",
    "argument_kb": "passed more than {value} KB to a host call",
    "result_kb": "received or returned more than {value} KB",
}


def limit_error(limit: str, hook: str, limits: HookLimits, file: str) -> HookLimit:
    """Return the error of a hook that exceeded a limit."""
    return HookLimit(
        limit,
        f"{hook} {MEANING[limit].format(value=getattr(limits, limit))}",
        place=Place(file),
        hint=f"raise hooks.limits.{limit} in package.yao if it needs more",
    )


def describe_call(js: str, arguments: Sequence[Any]) -> str:
    """Return a call for messages: its name with the texts among its first two arguments, which are
    a server and a tool, an assistant, a connector, a query; of a list of calls what each is to."""
    shown = [repr(each[:60]) for each in arguments[:2] if isinstance(each, str)]
    if arguments and isinstance(arguments[0], list):
        shown.append(f"[{', '.join(repr(each[:60]) for each in call_targets(arguments))}]")
    return f"{js}({', '.join(shown)})"


def call_targets(arguments: Sequence[Any]) -> list[str]:
    """Return what a call is to: its first argument, or the server, assistant, connector or type of
    search that each of a list of calls names."""
    first = arguments[0] if arguments else None
    if not isinstance(first, list):
        return [first] if isinstance(first, str) else []
    calls = [each for each in first if isinstance(each, Mapping)]
    named = ([each[key] for key in _TARGETS if isinstance(each.get(key), str)] for each in calls)
    return [names[0] for names in named if names]


def late_call_error(call: str, stack: str, limit: HookLimit, program: HookProgram) -> HookLimit:
    """Return the error of a host call that took too long, with the call and its line."""
    frames = frames_of(stack, program)
    place = frames[0][1] if frames else limit.place
    return HookLimit(limit.limit, f"{limit.message}: {call}", place=place, hint=limit.hint)


def thrown_error(hook: str, described: str, program: HookProgram) -> HookError:
    """Return the error of a hook that threw. `described` is the prelude's JSON {name, message,
    stack, code}. The place is the innermost frame of the package, the hint names the callers."""
    error: dict[str, str] = from_v8(described)
    frames = frames_of(error["stack"], program)
    name = error["name"] if error["name"] not in ("", "Error", "Exception") else ""
    code = f" (code {error['code']})" if error["code"] else ""
    message = _IMPORTED.sub(r"\1", error["message"]) + _suggest_name(error["message"])
    thrown = f"{name}: {message}" if name else message
    callers = _list_callers(frames[1:])
    place = frames[0][1] if frames else Place(program.modules[0].file)
    return HookThrew(
        f"{hook} threw {thrown}{code}",
        place=place,
        hint=f"called from {callers}" if callers else "",
    )


UNCAUGHT_IN = {
    "timer": "a timer of {hook}",
    "microtask": "a microtask of {hook}",
    "unawaited": "an async function that {hook} does not await",
}


def prelude_warning(
    request: str, hook: str, text: str, program: HookProgram
) -> tuple[str, HookError]:
    """Return the code of a warning that the prelude reports, and its error. `!uncaught`: an error
    in a callback or in a promise that is not awaited; `!lost`: a value of which JSON loses
    something; `!absent`: a part of `ctx` that is not there; `!no_hook`: neither Create nor Next, or
    not the function that package.yao names."""
    if request == "!uncaught":
        where, _, described = text.partition("\n")
        return UNCAUGHT, thrown_error(UNCAUGHT_IN[where].format(hook=hook), described, program)
    if request == "!absent":
        return "hook_absent", _absence_error(text, program)
    if request == "!no_hook":
        message, hint = "the hook defines neither Create nor Next", "the host calls these names"
        if text:
            message, hint = f"the hook has no function {text!r}", "`hooks` of package.yao names it"
        return "hook_empty", HookError(message, place=Place(program.modules[0].file), hint=hint)
    report = from_v8(text)
    code = "hook_not_finite" if report["becomes"] == "null" else "hook_not_json"
    return code, _lost_error(hook, report, program)


def _absence_error(described: str, program: HookProgram) -> HookError:
    """Return the error of a hook that read a missing part of `ctx`."""
    error: dict[str, str] = from_v8(described)
    frames = frames_of(error["stack"], program)
    place = frames[0][1] if frames else Place(program.modules[0].file)
    # Without the list of names: if the hook calls what it has read, the error has that.
    missing = _NOT_OFFERED.search(error["message"])
    bare = (
        error["message"][: missing.start("known")].removesuffix(": there are ") if missing else ""
    )
    message = (bare or error["message"]) + _suggest_name(error["message"])
    return HookThrew(f"{message}; it is undefined", place=place)


def _lost_error(hook: str, report: Mapping[str, Any], program: HookProgram) -> HookError:
    """Return the error of a value of which JSON loses something. `report` has the call (`of`, empty
    for a return), the path, the value (`was`), what it `becomes`, what to write `instead`, the
    number of further ones, and the stack."""
    argument = _ARGUMENT.match(report["path"])
    if report["of"]:
        at = f"argument {int(argument[1]) + 1}{argument[2]}" if argument else "its arguments"
        what = f"{report['of']} was given {report['was']} at {at}"
    else:
        what = (
            f"what {hook} returned has {report['was']} at {report['path']}"
            if report["path"]
            else f"{hook} returned {report['was']}"
        )
    more = f" (and {report['more']} more like it)" if report["more"] else ""
    frames = frames_of(report["stack"], program) if report["of"] else []
    place = frames[0][1] if frames else Place(program.modules[0].file)
    arrives = f"{what}, which arrives as {report['becomes']}{more}"
    return HookReturnInvalid(arrives, place=place, hint=report["instead"])


def _list_callers(frames: Sequence[tuple[str, Place]]) -> str:
    """Return the places of the callers; a recursive function is listed once."""
    named = dict.fromkeys(
        f"{place} in {where}" if where not in ("", "eval") else str(place)
        for where, place in frames
    )
    return ", ".join(named)


def _suggest_name(message: str) -> str:
    """Return the nearest of the names that the prelude's message lists, as part of a message."""
    found = _NOT_OFFERED.search(message)
    known = {name.lower(): name for name in found["known"].split(", ")} if found else {}
    near = difflib.get_close_matches(found["key"].lower(), known, n=1) if found else []
    return f" (did you mean {known[near[0]]!r}?)" if near else ""


def unsettled_error(hook: str, file: str) -> HookError:
    """Return the error of a hook whose promise can never be settled."""
    hint = "no timer is left and no call is under way: something it awaits is never resolved"
    return HookThrew(
        f"{hook} returned a promise that can never be settled", place=Place(file), hint=hint
    )


def engine_error(hook: str, message: str, program: HookProgram) -> HookError:
    """Return the error of an exception that V8 reports, outside the prelude's own catch."""
    return HookThrew(
        f"{hook} failed: {map_places(_first_line(message), program)}",
        place=Place(program.modules[0].file),
    )


def no_json_error(hook: str, described: str, program: HookProgram) -> HookError:
    """Return the error of a hook whose return value has no JSON form."""
    error: dict[str, str] = from_v8(described)
    frames = frames_of(error.get("stack", ""), program)  # of a getter, or of a method `toJSON`
    return HookReturnInvalid(
        f"what {hook} returned cannot be made JSON: {_first_line(error['message'])}",
        place=frames[0][1] if frames else Place(program.modules[0].file),
    )


def module_syntax_error(
    index: int, message: str, parse_message: str, program: HookProgram
) -> HookSyntaxError:
    """Return the error of a module that V8 refused, although the compiler accepted it.
    `parse_message` is V8's own, which has the line and a caret."""
    found = _PARSE.search(parse_message)
    if found is None:
        return HookSyntaxError(message, place=Place(program.modules[index].file))
    place = program.place(index, int(found[1]), len(found[4]) + 1)
    return HookSyntaxError(found[2].removeprefix("SyntaxError: "), place=place)


def _first_line(message: str) -> str:
    """Return the first line of a message, shortened."""
    return (message.strip().splitlines() or ["an unknown error"])[0][:LONGEST_LINE]


def return_error(
    hook: str, raw: Any, model: type[BaseModel], error: ValidationError, program: HookProgram
) -> HookReturnInvalid:
    """Return the error of a return value that has wrong types, with each of their paths."""
    wrong = _group_by_path(
        [(_path_through(path, raw), message) for path, message in validation_problems(error)]
    )
    shown = [f" at {dotted(path)}: {why}" if path else f": {why}" for path, why in wrong.items()]
    more = len(shown) - MOST_WRONG
    return HookReturnInvalid(
        f"what {hook} returned is wrong{';'.join(shown[:MOST_WRONG])}"
        + (f"; and {more} more" if more > 0 else ""),
        place=Place(program.modules[0].file),
        hint=f"known: {', '.join(model.model_fields)}" if () in wrong else "",
    )


def _group_by_path(found: Sequence[tuple[Steps, str]]) -> dict[Steps, str]:
    """Return the problems by path. Of the members of a union, which each have a problem, the one
    whose problem is deepest was meant; those with the same path are alternatives."""
    above = {path[:length] for path, _ in found for length in range(len(path))}
    wrong: dict[Steps, str] = {}
    for path, message in found:
        if path not in above:
            also = f"{wrong[path]}, or {message.removeprefix('should ')}" if path in wrong else ""
            wrong[path] = also or message
    return wrong


def map_places(text: str, program: HookProgram) -> str:
    """Return `text` with every place of the emitted code replaced by the one in the source, and
    without the frames of the prelude."""

    def replace(found: re.Match[str]) -> str:
        index, line, column = (int(number) for number in found.groups())
        return str(program.place(index, line, column)) if index < len(program.modules) else found[0]

    return _MENTION.sub(replace, _PRELUDE_FRAME.sub("", text))


def frames_of(stack: str, program: HookProgram) -> list[tuple[str, Place]]:
    """Return the frames of a stack trace that are in the package, innermost first: the function's
    name and its place in the source."""
    frames = []
    for found in _FRAME.finditer(stack):
        index = int(found["index"])
        if index < len(program.modules):
            frames.append(
                (
                    found["name"] or "",
                    program.place(index, int(found["line"]), int(found["column"])),
                )
            )
    return frames


def _path_through(path: Steps, raw: Any) -> Steps:
    """Return the steps of a validator's path that lead through `raw`, without the names of union
    members that the validator adds."""
    steps: list[str | int] = []
    here = raw
    for step in path:
        if step in _list_keys(here):
            here = here[step]
        elif (
            step is not path[-1]
            or not isinstance(here, dict)
            or "[" in str(step)
            or str(step) in ("bool", "str")
        ):
            continue
        steps.append(step)
    return tuple(steps)


def _list_keys(value: Any) -> Collection[str | int]:
    """Return the keys or positions of a JSON value."""
    if isinstance(value, dict):
        return value.keys()
    return range(len(value)) if isinstance(value, list) else ()
