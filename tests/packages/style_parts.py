"""What packages of the app in `style_app` bring besides hooks: functions as tools, MCP servers,
APIs, models, collections, locales, prompts, and tests with scripted searches."""

from __future__ import annotations

MODELS = {
    "models/shop/customer.mod.yao": """
        {
          "name": "Customer", "label": "Customers",
          "table": { "name": "shop_customer", "comment": "client" },
          "columns": [
            { "label": "ID", "name": "id", "type": "ID", "primary": true },
            {
              "label": "Name", "name": "name", "type": "string", "length": 80, "comment": "Name", "index": true,
              "validations": [{ "method": "typeof", "args": ["string"], "message": "{{input}} is no text" }]
            },
            { "label": "Tags", "name": "tags", "type": "json", "nullable": true },
            { "label": "Kind", "name": "kind", "type": "enum", "option": ["person", "firm"], "default": "person" }
          ],
          "relations": {
            "orders": { "type": "hasMany", "model": "order", "key": "customer_id", "foreign": "id" }
          },
          "indexes": [{ "comment": "by kind", "name": "kinds", "columns": ["kind"], "type": "index" }],
          "values": [{ "id": 1, "name": "Anna", "tags": ["new"], "kind": "person" }],
          "option": { "timestamps": true, "soft_deletes": true }
        }
    """,
    "assistants/models/analyst/models/visit.mod.yao": """
        {
          "name": "Visit", "table": { "name": "analyst_visit" },
          "columns": [
            { "name": "id", "type": "ID" },
            { "name": "customer_id", "type": "bigInteger" },
            { "name": "visited_at", "type": "timestamp", "label": "Visited" },
            { "name": "minutes", "type": "unsignedSmallInteger" }, // of the visit
            { "name": "stars", "type": "tinyInteger", "nullable": true },
            { "name": "notes", "type": "mediumText", "nullable": true },
            { "name": "left_at", "type": "timestampTz", "nullable": true },
          ],
          "option": { "timestamps": true, "trackings": false, "logging": true },
          "relations": {
            "customer": { "type": "hasOne", "model": "shop.customer", "key": "id", "foreign": "customer_id" },
          },
        }
    """,
}

SERVERS = {
    "mcps/clock.mcp.yao": """
        { "label": "Clock", "transport": "stdio", "command": "sh", "args": ["-c", "cat"], "start_timeout": 20, "timeout": "5s" }
    """,
    "mcps/shared.mcp.yao": """
        { "label": "Shared", "transport": "process", "tools": { "stamp": "scripts.stamps.Stamp" } }
    """,
    "scripts/stamps.ts": """
        /** A text with the date of today. */
        export function Stamp(text: string): string {
          return `${new Date().toISOString().slice(0, 10)} ${text}`;
        }
    """,
    "assistants/team/sales/bot/mcps/desk.mcp.yao": """
        {
          "label": "Desk", "description": "Orders of customers", "transport": "process",
          "capabilities": { "tools": { "listChanged": false } },
          "tools": { "confirm": "agents.team.sales.bot.tools.Confirm", "find": "scripts.lib.find.Find" }
        }
    """,
    "assistants/team/sales/bot/mcps/mapping/desk/schemes/confirm.in.yao": """
        {
          "type": "object", "description": "Confirm an order.",
          "properties": { "id": { "type": "string" }, "note": { "type": "string" } },
          "required": ["id"],
          "x-process-args": ["$args.id", "$args.note"]
        }
    """,
    "assistants/team/sales/bot/mcps/mapping/desk/schemes/confirm.out.yao": """
        { "type": "object", "properties": { "ok": { "type": "boolean" } } }
    """,
    "assistants/team/sales/bot/src/tools.ts": """
        export function Confirm(id: string, note?: string) {
          if (!id) throw new Exception("which order?", 400);
          return { ok: true, id, note: note ?? "" };
        }
    """,
    "assistants/team/sales/bot/src/lib/find.ts": """
        /** Find orders by a word. */
        export function Find(args: { word: string; limit?: number }): { id: number }[] {
          return Process("models.order.Get", { wheres: [{ column: "status", value: args.word }], limit: args.limit || 5 });
        }
    """,
    "assistants/kb/guide/src/tools.ts": """
        import { agent } from "@yao/runtime";

        interface Place {
          /** Name of the chapter */
          chapter: string;
          page?: number;
          kinds?: ("text" | "table")[];
        }

        /** Open a chapter of the guide. */
        export function open(place: Place, ctx: agent.Context): { text: string } {
          const found = ctx.search.KB(place.chapter, { limit: 1 });
          return { text: found.items[0]?.content ?? "" };
        }

        /**
         * Count words.
         * @param text what is counted
         */
        export const count = (text: string): number => text.split(/\\s+/).filter(Boolean).length;
    """,
}

APIS = {
    "apis/weather.api.yao": """
        {
          "name": "Weather", "url": "https://weather.example/search", "method": "POST",
          "body": { "q": "{{ question }}", "n": "{{ limit }}" },
          "items": "data.rows", "fields": { "id": "id", "title": "place", "content": ["text"], "url": "link" }
        }
    """,
    "assistants/team/sales/bot/apis/quotes.api.yao": """
        { "url": "https://sales.example/quotes", "query": { "q": "{{ question }}" }, "timeout_ms": 2000 }
    """,
}

TEXTS = {
    "assistants/kb/guide/kb/handbook.kb.yao": '{ "name": "Handbook", "description": "How we work" }',
    "assistants/kb/guide/prompts.yml": """
        - role: system
          content: |
            You explain the handbook of $CTX.METADATA.company to $CTX.USER_ID.
            It is $SYS.WEEKDAY, $SYS.DATETIME ($SYS.TIMEZONE). {{ guide.tone }}
            Costs are written as $5 or $ENVELOPE; JSON is {"a": {"b": 1}}; mails go to me@assets.example.
        - role: user
          name: sample
          content: "What is a \\"stay\\"?"
        - role: assistant
          content: 'It''s a visit: one night or more.'
    """,
    "assistants/kb/guide/locales/en-us.yml": """
        name: Guide
        guide:
          tone: "Be short."
    """,
    "assistants/kb/guide/locales/de-de.yml": """
        name: Handbuch
        guide: { tone: 'Fasse dich kurz.' }
    """,
    "assistants/kb/guide/locales/zh-cn.yml": """
        name: 指南
        guide:
          tone: >-
            请简短
            回答。
    """,
    "assistants/prompts/variables/prompts/mode/formal.yml": """
        - role: system
          content: You are formal, $CTX.ASSISTANT_NAME.
    """,
    "assistants/chat/README.md": "# Chat\n",
    "assistants/chat/src/data/map.json": '{ "tea": "drink" }',
    "assistants/chat/src/index.ts": """
        import { agent } from "@yao/runtime";
        import map from "./data/map.json";
        import { lastText, type Hit } from "./lib/text";

        function Create(ctx: agent.Context, messages: agent.Message[], options: agent.HookOptions): agent.Create {
          const text = lastText(messages);
          const hits: Hit[] = ctx.search.KB(text, { collections: ["docs"], threshold: 0.2, limit: 3 }).items;
          if (hits.length === 0 && map[text] === undefined) return null;
          const id = ctx.SendStream({ type: "text", props: { content: "" } });
          hits.forEach((hit, index) => ctx.Append(id, `${index + 1}. ${hit.title}\\n`));
          ctx.End(id);
          return {
            search: { need_search: false },
            metadata: { hits: hits.length, drink: map[text] ?? null },
            temperature: options.temperature ?? 0.1,
          };
        }

        function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          if (payload.error) throw new Error(payload.error);
          const parsed = Process("text.ExtractJSON", payload.completion.content);
          return { data: { ...(parsed || {}), hits: ctx.metadata.hits ?? 0 }, metadata: { tools: payload.tools.length } };
        }
    """,
    "assistants/chat/src/lib/text.ts": """
        export interface Hit { title: string; content: string; score: number }
        export function lastText(messages: agent.Message[]): string {
          const { content } = messages[messages.length - 1];
          if (typeof content === "string") return content.trim();
          return content.filter((part) => part.type === "text").map((part) => part.text).join(" ");
        }
    """,
}

TESTS = {
    "assistants/chat/tests/chat.test.ts": """
        import { lastText } from "../src/lib/text";

        test("the text of the last message counts", () => {
          expect(lastText([{ role: "user", content: " tea " }])).toBe("tea");
        });

        describe("a turn", () => {
          test("shows what was found, and returns the JSON of the answer", () => {
            const answer = turn("tea", {
              searches: { kb: [{ title: "Tea", content: "A drink." }] },
              model: ['Here it is: {"kind": "drink"}'],
            });
            expect(answer.error).toBeNull();
            expect(answer).toHaveSearched("kb", { query: "tea", collections: ["docs"] });
            expect(answer).toHaveSent(/1. Tea/);
            expect(answer).toHaveReturned({ kind: "drink", hits: 1 });
            expect(answer.metadata.drink).toBe("drink");
          });

          test("goes on when the search fails", () => {
            const answer = turn("tea", { searches: { kb: "no disk" }, model: ["{}"] });
            expect(answer.error).toBeNull();
            expect(answer.data.hits).toBe(0);
          });
        });
    """,
    "assistants/kb/guide/tests/guide.test.ts": """
        import { count } from "../src/tools";

        test("the chapter that the app's own reranker prefers is cited", () => {
          expect(count("one two")).toBe(2);
          const answer = turn("What is a stay?", {
            searches: { kb: [{ title: "Stays", score: 0.9 }, { title: "Visits", score: 0.4 }] },
            model: ["It is a visit {ref:0}."],
            metadata: { company: "Ours" },
          });
          expect(answer.error).toBeNull();
          expect(answer.warnings).toEqual([]);
          expect(answer).toHaveCited("Stays");
          expect(answer.model_calls.at(-1).tools).toEqual(["open", "count"]);
        });
    """,
    "assistants/team/sales/bot/tests/desk.test.ts": """
        test("an order is confirmed by a function of the package", () => {
          const answer = turn("Confirm order 7", {
            model: [{ tool_calls: [{ name: "desk__confirm", arguments: { id: "7" } }] }, "Done."],
          });
          expect(answer.error).toBeNull();
          expect(answer.content).toBe("Done.");
        });
    """,
}

FILES = {**MODELS, **SERVERS, **APIS, **TEXTS, **TESTS}
