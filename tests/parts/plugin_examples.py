"""The plug-ins of the documents, and an app that uses them."""

from __future__ import annotations

import json
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs/plugins"


APP = {
    "agent/agent.yml": "hooks: {workers: 0}\n",
    "agent/search.yao": '{"web": {"provider": "pages"}}',
    "assistants/a/package.yao": json.dumps(
        {
            "connector": "echo",
            "kb": ["docs"],
            "search": {"kb": True},
            "uses": {"rerank": "shortest"},
        }
    ),
    "connectors/echo.conn.yao": '{"type": "echo", "options": {"plugin": {"prefix": "Echo: "}}}',
    "kb/docs.kb.yao": '{"embedding": {"provider": "letters"}}',
    "models/pen.mod.yao": json.dumps(
        {"name": "Pen", "table": {"name": "pen"}, "columns": [{"name": "id", "type": "ID"}]}
    ),
    "rows/pen.json": '[{"id": 1, "name": "Quill"}, {"id": 2, "user_id": "u2"}]',
    "assistants/b/package.yao": '{"connector": "echo", "db": ["pen"], "search": false}',
    "assistants/b/index.ts": "const Create = () => ({ metadata: { pens: Process('models.pen.Get') } });",
    "today.log": "The press stopped.\nIt was oiled.\n",
}
