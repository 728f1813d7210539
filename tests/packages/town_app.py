"""A second app of twenty assistants in the style of published packages: the services of a town. It
has what `style_app` does not use: plain JavaScript, path aliases, generics and overloads in tools,
tools and servers chosen in Create, steps done by hooks, spaces of the trace, images."""

from __future__ import annotations

from tests.packages.town_hooks import HOOKS

APP = {
    "agent/agent.yml": """
        connector: small
        uses:
          keyword: desk.words
          querydsl: desk.rows
          rerank: desk.order
          rewrite: builtin
    """,
    "agent/search.yao": """
        {
          "$schema": "../types/search.schema.json",
          "web": { "provider": "serper", "max_results": 4, "timeout_ms": 3000, "exclude_sites": ["example.net"] },
          "kb": { "threshold": 0.1, },
          /* the citizens' language decides */
          "citation": { "format": "[{index}]", "autoInjectPrompt": true },
          "weights": { "user": 1, "hook": 2, "auto": 0.5 },
          "options": { "skip_threshold": 3 },
        }
    """,
    "agent/prompts.yml": """
        - role: system
          content: "Town of {{ town }}? No: see $SYS.DATE and $CTX.LOCALE; ${PLAIN} and $5 stay."
    """,
    "connectors/small.conn.yao": """
        {
          "$schema": "x", "label": "Small", "type": "openai",
          "options": {
            "model": "small-1", "host": "http://127.0.0.1:9/v1", "key": "none", "timeout": 20, "temperature": 0.3,
            "capabilities": { "vision": true, "tool_calls": true, "streaming": true, "json": true }
          }
        }
    """,
    "connectors/team/wise.conn.yao": """
        {
          "label": "Wise", "type": "anthropic",
          "options": { "model": "wise-1", "host": "http://127.0.0.1:9", "key": "none", "max_tokens": 500 }
        }
    """,
    "kb/town/rules.kb.yao": '{ "name": "Rules", "chunk": { "size": 200 }, "fields": { "year": { "type": "integer" } } }',
    "models/permit.mod.yao": """
        {
          "name": "Permit", "table": { "name": "permit", "comment": "Permits" },
          "columns": [
            { "label": "ID", "name": "id", "type": "ID", "comment": "ID", "primary": true },
            { "label": "Kind", "name": "kind", "type": "enum", "option": ["build", "event", "dog"] },
            { "label": "Fee", "name": "fee", "type": "decimal", "precision": 8, "scale": 2, "default": 0 },
            { "label": "Holder", "name": "holder_id", "type": "bigInteger", "nullable": true, "index": true },
            { "label": "Given", "name": "given_on", "type": "date", "nullable": true }
          ],
          "relations": { "holder": { "type": "hasOne", "model": "people.citizen", "key": "id", "foreign": "holder_id" } },
          "values": [{ "id": 1, "kind": "dog", "fee": "90.00", "holder_id": 1, "given_on": "2026-02-03" }],
          "option": { "timestamps": true, "soft_deletes": true, "permission": false }
        }
    """,
    "models/people/citizen.mod.yao": """
        {
          "name": "Citizen", "table": { "name": "people_citizen" },
          "columns": [{ "name": "id", "type": "id" }, { "name": "name", "type": "string", "length": 60 }],
          "relations": { "permits": { "type": "hasMany", "model": "permit", "key": "holder_id", "foreign": "id" } },
          "values": [{ "id": 1, "name": "Ida" }]
        }
    """,
    "mcps/maps.mcp.yao": """
        { "label": "Maps", "transport": "http", "url": "http://127.0.0.1:9/mcp", "authorization_token": "none", "timeout": "10s" }
    """,
    "mcps/forms.mcp.yao": """
        {
          "label": "Forms", "transport": "process",
          "tools": { "fee": "scripts.money.Fee", "permit": "models.permit.Find" },
          "resources": {}
        }
    """,
    "scripts/money.ts": """
        /** The fee of a permit in cents. */
        export function Fee(kind: "build" | "event" | "dog", days: number = 1): number {
          return { build: 50000, event: 2000, dog: 9000 }[kind] * (kind === "event" ? days : 1);
        }
    """,
    "apis/trains.api.yao": """
        {
          "label": "Trains", "url": "https://trains.example/{{ locale }}/departures", "method": "GET",
          "query": { "find": "{{ question }}", "n": "{{ limit }}" }, "items": "departures",
          "fields": { "id": "number", "title": "line", "content": "text", "url": "link" }, "max_results": 5
        }
    """,
}

PACKAGES = {
    "desk/words": '{ "name": "Words", "type": "worker", "public": false }',
    "desk/rows": '{ "name": "Rows", "type": "worker" }',
    "desk/order": '{ "name": "Order", "type": "worker" }',
    "desk/front": """
        {
          "name": "{{ name }}", "avatar": "/a.png", "connector": "small", "mentionable": true, "automated": false,
          "search": { "web": true, "kb": true, "db": true }, "kb": { "collections": ["town.rules"] }, "db": { "models": ["permit"] },
          "locales": { "en": { "name": "Front desk" }, "de": { "name": "Empfang" } }
        }
    """,
    "mcps/bridge": """
        {
          "name": "Bridge", "connector": "small",
          "mcp": { "servers": ["forms", { "maps": ["find"] }], "options": { "tool_loop": true, "max_turn": 4 } }
        }
    """,
    "connectors/chooser": """
        {
          "name": "Chooser", "connector": ["team.wise", "small"],
          "connector_options": { "optional": true, "connectors": ["small", "team.wise"] },
          "options": { "max_completion_tokens": 300, "reasoning_effort": "low", "stop": ["END"], "seed": 3 }
        }
    """,
    "apis/departures": '{ "name": "Departures", "connector": "small", "placeholder": { "title": "Trains", "prompts": ["Next?"] } }',
    "toolkits/tools": '{ "name": "Tools", "connector": "small", "hooks": { "create": "src/before" } }',
    "src": '{ "name": "A package named as a part", "connector": "small" }',
    "tests/plain": '{ "name": "Plain", "connector": "small" }',
    "tests/asynchronous": '{ "name": "Asynchronous", "connector": "small" }',
    "tests/aliases": '{ "name": "Aliases", "connector": "small" }',
    "tests/classes": '{ "name": "Classes", "connector": "small" }',
    "tests/spaces": '{ "name": "Spaces", "connector": "small" }',
    "tests/absent": '{ "name": "Absent", "connector": "small", "hooks": { "on_error": "continue" } }',
    "tests/callers": '{ "name": "Callers", "connector": "small", "http": { "hosts": ["api.example.org"] } }',
    "tests/memory": '{ "name": "Memory", "connector": "small" }',
    "tests/next-only": '{ "name": "Next alone", "connector": "small", "search": false }',
    "tests/images": '{ "name": "Images", "connector": "small", "uses": { "search": "disabled" } }',
    "prompts/voices": """
        {
          "name": "Voices", "connector": "small", "prompt_preset": "calm.short", "disable_global_prompts": true,
          "prompts": { "default": [{ "role": "system", "content": "Speak plainly, {{ who }}." }] }
        }
    """,
}

TEXTS = {
    "prompts/voices/prompts/calm/short.yml": "- role: system\n  content: |-\n    Calm. @assets/tone.md {{ $CTX.user_id }}\n",
    "prompts/voices/assets/tone.md": "Few words.\n",
    "prompts/voices/locales/en.yml": "who: friend\n",
    "desk/front/prompts.yml": "- role: developer\n  content: You greet $CTX.USER_ID of $CTX.TEAM_ID.\n",
    "mcps/bridge/mcps/mapping/forms/schemes/fee.in.yao": (
        '{ "description": "The fee.", "type": "object", "properties": { "kind": { "type": "string" } },'
        ' "x-process-args": ["$args.kind"] }'
    ),
    "tests/aliases/tsconfig.json": """
        {
          "compilerOptions": {
            "baseUrl": ".", "strict": true,
            "paths": { "@lib/*": ["./src/lib/*"], "@yao/runtime": ["../../../node_modules/@yao/runtime"] },
          },
        }
    """,
    "tests/aliases/src/data/fees.json": '{ "dog": 90 }',
}


def files() -> dict[str, str]:
    """Return the whole app: path → text."""
    made = dict(APP)
    for path, package in PACKAGES.items():
        made[f"assistants/{path}/package.yao"] = package
    for path, text in {**HOOKS, **TEXTS}.items():
        made[f"assistants/{path}"] = text
    return made
