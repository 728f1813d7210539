"""A toolkit of memories that may be written."""

from __future__ import annotations

import json

WRITABLE = {
    "agent/agent.yml": "kb_storage:\n  idle_s: 3\n",
    "assistants/memory/package.yao": '{"name": "M", "tools": ["memory"]}',
    "assistants/memory/kb/own.kb.yao": json.dumps(
        {
            "name": "Own",
            "embedding": {"provider": "hash"},
            "tenant_field": "owner",
            "fields": {
                "preview": "text",
                "tags": "keyword",
                "written": "datetime",
                "supersedes": "keyword",
                "links": "keyword",
            },
        }
    ),
    "assistants/memory/toolkits/memory.toolkit.yao": json.dumps(
        {
            "type": "memory",
            "collections": {"own": "own"},
            "write": True,
            "deadline_ms": 60_000,  # only a hang reaches it, also on a busy machine
        }
    ),
}
