"""An app of twenty small assistants, written the way published packages are: nothing here was
written for this host alone."""

from __future__ import annotations

from tests.packages.style_parts import FILES

HOOK_IMPORTS = 'import { agent } from "@yao/runtime";\n'

CONNECTORS = {
    "connectors/gpt.conn.yao": """
        {
          "label": "GPT", "type": "openai", "version": "1.0.0",
          "options": {
            "model": "gpt-x", "host": "http://127.0.0.1:9/v1", "key": "none",
            "capabilities": { "vision": "openai", "tool_calls": true, "streaming": true }
          }
        }
    """,
    "connectors/claude.conn.yao": """
        {
          "label": "Claude", "type": "anthropic",
          "options": { "model": "claude-x", "host": "http://127.0.0.1:9", "key": "none", "reasoning_effort": "low" }
        }
    """,
}

APP = {
    "agent/agent.yml": """
        uses:
          default: chat
          title: workers.title
          vision: workers.vision
          keyword: workers.keyword
          querydsl: workers.query
          rerank: workers.rerank
        connector: gpt
    """,
    "agent/search.yao": """
        {
          // settings of every assistant
          "web": { "provider": "serpapi", "max_results": 5 },
          "citation": { "format": "xml", "auto_inject_prompt": true },
          "weights": { "user": 2, "hook": 1.5, "auto": 0.6 },
          "querydsl": { "strict": false },
        }
    """,
    "agent/prompts.yml": """
        - role: system
          content: |
            Today is $SYS.DATE ($SYS.WEEKDAY, $SYS.TIMEZONE). The user speaks $CTX.LOCALE.
    """,
    "kb/docs.kb.yao": '{ "name": "Docs" }',
    "models/order.mod.yao": """
        {
          "name": "Order", "table": { "name": "orders" },
          "columns": [
            { "name": "id", "type": "ID" },
            { "name": "status", "type": "enum", "option": ["new", "paid"] },
            { "name": "total", "type": "float" },
            { "name": "customer_id", "type": "bigInteger", "nullable": true }
          ]
        }
    """,
    "mcps/tools.mcp.yao": '{ "transport": "http", "url": "http://127.0.0.1:9/mcp" }',
}

PACKAGES = {
    "chat": '{ "name": "Chat", "connector": "gpt", "options": { "temperature": 0.7, "top_p": 0.9 } }',
    "workers/title": '{ "name": "Title", "connector": "gpt", "options": { "max_tokens": 20, "stop": "." } }',
    "workers/vision": '{ "name": "Vision", "connector": "gpt", "type": "worker" }',
    "workers/keyword": '{ "name": "Keywords", "type": "worker", "automated": true }',
    "workers/query": '{ "name": "Queries", "type": "worker" }',
    "workers/rerank": '{ "name": "Reranker", "type": "worker" }',
    "tests/hook-basic": '{ "name": "Basic hook", "connector": "gpt" }',
    "tests/hook-files": """
        { "name": "Files", "connector": "gpt", "hooks": { "create": "src/create.ts", "next": "src/next.ts" } }
    """,
    "tests/hook-trace": '{ "name": "Trace", "connector": "gpt" }',
    "tests/hook-memory": '{ "name": "Memory", "connector": "gpt" }',
    "tests/hook-calls": '{ "name": "Calls", "connector": "gpt", "sandbox": { "image": "node" } }',
    "tests/mcp-loop": """
        {
          "name": "Tools", "connector": "gpt",
          "mcp": { "servers": ["tools", { "server_id": "tools", "tools": ["echo"] }], "options": { "tool_loop": true, "max_turn": 3 } }
        }
    """,
    "tests/json-answers": """
        {
          "name": "JSON", "connector": "gpt",
          "options": { "response_format": { "type": "json_object" }, "seed": 7, "presence_penalty": 0.5, "frequency_penalty": 0.5 }
        }
    """,
    "tests/thinking": '{ "name": "Thinker", "connector": "claude", "options": { "reasoning_effort": "high" } }',
    "src/search-all": """
        {
          "name": "{{ name }}", "description": "{{ description }}", "connector": "gpt",
          "search": { "web": true, "kb": true, "db": true, "citation": { "format": "[{index}]" }, "weights": { "hook": 1.2 } },
          "kb": { "collections": ["docs"] }, "db": { "models": ["order"] }
        }
    """,
    "kb/guide": """
        {
          "name": "{{ name }}", "connector": "gpt", "kb": { "collections": ["docs", "handbook"] },
          "search": { "web": false, "kb": { "threshold": 0.4 }, "rerank": { "type": "agent", "agent": "workers.rerank", "top_k": 3 } }
        }
    """,
    "models/analyst": """
        { "name": "Analyst", "connector": "gpt", "db": ["order", "shop.customer", "visit"], "search": { "db": true, "querydsl": { "strict": false } } }
    """,
    "prompts/variables": """
        {
          "name": "Variables", "connector": "gpt", "prompt_preset": "friendly",
          "placeholder": { "title": "{{ chat.title }}", "prompts": ["{{ chat.first }}"] }
        }
    """,
    "locales/router": """
        {
          "name": "Router", "connector": "gpt", "capabilities": "Sends a question to the right assistant.",
          "connector_options": { "optional": true, "connectors": ["gpt", "claude"], "filters": ["tool_calls"] },
          "modes": ["chat", "task"], "default_mode": "chat", "tags": ["router"], "public": true, "sort": 3
        }
    """,
    "team/sales/bot": """
        {
          "name": "Sales", "connector": ["claude", "gpt"], "disable_global_prompts": true,
          "mcp": { "servers": ["clock", "shared", { "server_id": "desk", "tools": ["confirm"] }] }
        }
    """,
}

HOOKS = {
    "workers/keyword/src/index.ts": """
        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
          return { data: { keywords: [{ k: request.content.split(" ")[0], w: 0.9 }] } };
        }
    """,
    "workers/query/src/index.ts": """
        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          return { data: { from: "orders", select: ["status", ":COUNT(id) as total"], groups: ["status"], orders: [{ field: "total", sort: "desc" }] } };
        }
    """,
    "workers/rerank/src/index.ts": """
        interface Ask { query: string; items: { citation_id: string; score?: number }[]; top_n: number }
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          return { messages };
        }
        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          const ask: Ask = Process("text.ExtractJSON", payload.messages[payload.messages.length - 1].content);
          const order = ask.items.sort((a, b) => b.score - a.score).map((item) => item.citation_id);
          return { data: { order: order.slice(0, ask.top_n) } };
        }
    """,
    "tests/hook-basic/src/index.ts": """
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          log.Info("create for %s", ctx.assistant_id);
          const text = messages[messages.length - 1].content.trim();
          if (text === "") throw new Exception("the question is empty", 400);
          return { messages, temperature: 0.2, theme: "dark", metadata: { length: text.length } };
        }
        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          const { completion, error } = payload;
          if (error) return { data: { message: $L("failed"), error } };
          return { data: { text: completion.content, length: ctx.metadata.length } };
        }
    """,
    "tests/hook-files/src/create.ts": """
        import { count } from "./shared";
        export function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          return { messages, metadata: { count: count(messages) } };
        }
    """,
    "tests/hook-files/src/next.ts": """
        import { count } from "./shared";
        export function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          return { data: { count: count(payload.messages) } };
        }
    """,
    "tests/hook-files/src/shared.ts": "export const count = (list: any[]): number => list.length;\n",
    "tests/hook-trace/src/index.ts": """
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          const node = ctx.trace.Add({ query: "x" }, { label: "Search", type: "search", icon: "search" });
          node.Info("begins").SetMetadata("k", 1).SetOutput({ ok: true }).Complete();
          const [one, two] = ctx.trace.Parallel([{ input: 1, option: { label: "a" } }, { input: 2, option: { label: "b" } }]);
          one.Complete(); two.Fail("no");
          if (!ctx.trace.IsComplete()) ctx.trace.MarkComplete();
          ctx.trace.Release();
          return null;
        }
    """,
    "tests/hook-memory/src/index.ts": """
        function Create(ctx: agent.Context): agent.Create {
          ctx.memory.context.Push("seen", ["a", "b"]);
          ctx.memory.context.AddToSet("seen", ["b", "c"]);
          const all: string[] = ctx.memory.context.ArrayAll("seen");
          if (ctx.sandbox) ctx.sandbox.Run("ls");
          return { metadata: { all, size: ctx.memory.context.ArrayLen("seen") } };
        }
    """,
    "tests/hook-calls/src/index.ts": """
        type Found = { title: string; content: string; score: number };
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          const query: string = messages[0].content;
          const results = ctx.search.All([{ type: "web", query, limit: 3 }, { type: "kb", query, collections: ["docs"] }]);
          const items: Found[] = results.flatMap((result) => result.items || []);
          const answers = ctx.agent.All([{ agent: "chat", messages: [{ role: "user", content: query }] }], {
            onChunk: (id, index, chunk) => (chunk.content.length > 100 ? 1 : 0),
          });
          const model = ctx.llm.Stream("gpt", messages, { temperature: 0, response_format: { type: "json_object" }, onChunk: (chunk) => 0 });
          return { messages: [{ role: "system", content: items.map((item) => item.title).join() + answers[0].content + model.content }], search: false };
        }
    """,
    "src/search-all/src/index.ts": """
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          return { messages, search: { need_search: true, types: ["web", "kb"] }, uses: { querydsl: "builtin" } };
        }
    """,
    "locales/router/src/index.ts": """
        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          return { delegate: { agent_id: "team.sales.bot", messages: payload.messages, options: { search: false } } };
        }
    """,
}

TEXTS = {
    "tests/hook-basic/locales/en-us.yml": "failed: It failed\n",
    "src/search-all/locales/en-us.yml": "name: Search\ndescription: Searches all\n",
    "src/search-all/locales/zh-cn.yml": "name: 搜索\ndescription: 全部\n",
    "prompts/variables/locales/en-us.yml": "chat:\n  title: Hello\n  first: What is new?\n",
    "prompts/variables/assets/rules.md": "Be kind.\n",
    "prompts/variables/prompts.yml": (
        "- role: system\n  content: |\n    You are $CTX.ASSISTANT_NAME. @assets/rules.md\n"
        "    {{ chat.title }}, it is $SYS.TIME.\n"
    ),
    "prompts/variables/prompts/friendly.yml": "- role: system\n  content: Hello $CTX.USER_ID\n",
    "chat/prompts.yml": "- role: system\n  content: You help.\n",
}


def files() -> dict[str, str]:
    """Return the whole app: path → text."""
    made = {**APP, **CONNECTORS}
    for path, package in PACKAGES.items():
        made[f"assistants/{path}/package.yao"] = package
    for path, hook in HOOKS.items():
        imports = HOOK_IMPORTS if "agent." in hook else ""
        made[f"assistants/{path}"] = imports + hook
    for path, text in TEXTS.items():
        made[f"assistants/{path}"] = text
    return {**made, **FILES}
