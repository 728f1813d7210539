"""Hooks and tools of the packages in `town_app`."""

from __future__ import annotations

HOOKS = {
    "desk/words/index.js": """
        // an agent for keywords that answers with text in a fence
        function Create(ctx, messages) {
          const { content } = JSON.parse(messages[messages.length - 1].content);
          return { messages: [{ role: "user", content: "Keywords of: " + content }] };
        }
        const Next = (ctx, payload) => ({ data: "```json\\n{'keywords': ['" + (payload.completion?.content || "town") + "',]}\\n```" });
    """,
    "desk/rows/src/index.ts": """
        import { agent, Process } from "@yao/runtime";
        export function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          const asked = Process("text.ExtractJSON", payload.messages.at(-1)!.content);
          if (!asked) return { data: { error: "no question" } };
          return { data: { dsl: { select: [":COUNT(id) as total", "kind"], from: "permit", groups: ["kind"], orders: [{ field: "total", sort: "desc" }], limit: 5 } } };
        }
    """,
    "desk/order/src/index.ts": """
        // @ts-nocheck
        function Next(ctx, payload) {
          const { items, top_n } = JSON.parse(payload.messages[payload.messages.length - 1].content);
          return { data: { order: items.map((item) => item.citation_id).reverse().slice(0, top_n) } };
        }
    """,
    "desk/front/index.ts": """
        import type { agent } from "@yao/runtime";

        const GREETING: Readonly<Record<string, string>> = { en: "Hello", de: "Hallo" };

        export default {
          Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
            const name = $L("name");
            ctx.Send({ type: "text", props: { content: `${GREETING[ctx.locale] ?? GREETING.en}, ${name}` } });
            return { search: { need_search: true, search_types: ["web", "kb", "db"] }, locale: "de", theme: "light", route: "/front" };
          },
          Next: (ctx: agent.Context, { completion, error }: agent.Payload): agent.Next =>
            error ? null : { data: { route: ctx.route, theme: ctx.theme, locale: ctx.locale, text: completion.content } },
        };
    """,
    "mcps/bridge/src/index.ts": """
        import { agent } from "@yao/runtime";
        function Create(ctx: agent.Context): agent.Create {
          const { tools } = ctx.mcp.ListTools("forms");
          const fee = ctx.mcp.CallTool("forms", "fee", { kind: "dog" });
          const all = ctx.mcp.All([{ server: "forms", tool: "fee", arguments: { kind: "event" } }, { server: "forms", tool: "permit", arguments: { id: 1 } }]);
          const direct: number = Process("scripts.money.Fee", "event", 3);
          return {
            mcp_servers: [{ server_id: "forms", tools: ["fee"] }],
            metadata: { tools: tools.map((tool) => tool.name).sort(), fee: fee.result, all: all.length, direct },
          };
        }
    """,
    "connectors/chooser/src/index.ts": """
        import { agent } from "@yao/runtime";
        function Create(ctx: agent.Context, messages: agent.Message[], options: agent.HookOptions): agent.Create {
          const connector = messages.some((message) => String(message.content).length > 2000) ? "team.wise" : "small";
          return { connector, temperature: 0, max_tokens: 200, uses: { rewrite: "builtin" } };
        }
    """,
    "toolkits/tools/src/before.ts": """
        import { agent } from "@yao/runtime";
        import { Sum } from "./tools";
        export function Create(ctx: agent.Context): agent.Create {
          const called = ctx.tools.Call("Sum", { numbers: [1, 2] });
          if (called.error) log.Warn("no sum: %s", called.error);
          return { tools: ["Sum", "Describe"], metadata: { sum: called.result, same: Sum([1, 2]), offered: ctx.tools.List().length } };
        }
    """,
    "toolkits/tools/src/tools.ts": """
        import { agent } from "@yao/runtime";

        type Unit = "m" | "km";
        interface Range<T> { from: T; to?: T }
        enum Kind { Road = "road", Path = "path" }

        /** Add numbers. */
        export function Sum(numbers: number[] = []): number {
          return numbers.reduce((sum, each) => sum + each, 0);
        }

        /**
         * Describe a way.
         * @param length how long it is
         */
        export async function Describe(length: number | string, unit: Unit = "m", kinds?: Kind[], ctx?: agent.Context): Promise<string> {
          return `${length} ${unit} ${(kinds ?? [Kind.Road]).join()} for ${ctx?.authorized?.user_id || "anybody"}`;
        }

        /** Find days in a range. */
        export function Days(range: Range<string>, options: { most?: number; asText?: boolean } & { sorted?: boolean } = {}): string[] {
          return [range.from, range.to ?? range.from].slice(0, options.most ?? 2);
        }

        export function Format(value: number): string;
        export function Format(value: string): string;
        /** Format a value. */
        export function Format(value: number | string): string {
          return `<${value}>`;
        }
    """,
    "src/index.ts": "export function Create() { return; }\n",
    "tests/plain/index.js": """
        'use strict'
        var count = 0
        function helper(list) { return list.length }
        function Create(ctx, messages, options) {
          count += helper(messages)
          console.log('messages: %d', count, { count })
          return undefined
        }
        function Next(ctx, payload) { return { data: count } }
        module.exports = { Create: Create, Next: Next }
    """,
    "tests/asynchronous/src/index.ts": """
        import { agent, time } from "@yao/runtime";
        const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

        export async function Create(ctx: agent.Context, messages: agent.Message[]) {
          const [first, second] = await Promise.all([
            (async () => { await pause(1); return 1; })(),
            pause(2).then(() => 2),
          ]);
          try {
            await pause(1);
            ctx.workspace();
          } catch (error) {
            log.Info(error.message);
          } finally {
            time.Sleep(1);
          }
          for await (const each of (async function* () { yield first; yield second; })()) log.Debug("%v", each);
          return { metadata: { sum: first + second } };
        }
    """,
    "tests/aliases/src/index.ts": """
        import { agent } from "@yao/runtime";
        import { fee as price, type Fee } from "@lib/fees";
        export * from "@lib/after";
        export function Create(): agent.Create {
          const known: Fee[] = [price("dog"), price("cat")];
          return { metadata: { known } };
        }
    """,
    "tests/aliases/src/lib/fees.ts": """
        import * as fees from "../data/fees.json";
        export interface Fee { kind: string; euros: number | null }
        export const fee = (kind: string): Fee => ({ kind, euros: (fees as Record<string, number>)[kind] ?? null });
    """,
    "tests/aliases/src/lib/after/index.ts": """
        export function Next(_ctx: any, payload: any) { return { data: payload.completion.content.length > 0 }; }
    """,
    "tests/classes/src/index.ts": """
        import { agent } from "@yao/runtime";
        abstract class Step<T extends object> {
          static #made = 0;
          protected constructor(protected readonly value: T) { Step.#made++; }
          abstract run(): T;
          static get made() { return Step.#made; }
        }
        class Add extends Step<{ total: number }> {
          constructor(total: number) { super({ total }); }
          run() { return { ...this.value, total: this.value.total + 1 }; }
        }
        namespace Words { export const yes = "ja" as const; }
        const table = { a: 1, b: 2 } satisfies Record<string, number>;
        function Create(ctx: agent.Context): agent.Create {
          const steps = [new Add(1), new Add(2)].map((step) => step.run());
          const key: keyof typeof table = "b";
          return { metadata: { steps, made: Step.made, word: Words.yes, value: table[key], big: Number(10n ** 3n) } };
        }
    """,
    "tests/spaces/src/index.ts": """
        import { agent } from "@yao/runtime";
        let space: any;
        function Create(ctx: agent.Context): agent.Create {
          space = ctx.trace.CreateSpace({ label: "Plan", type: "plan" });
          space.Set("step", 1).Set("of", 2);
          const found = ctx.trace.GetSpace(space.id);
          const node = ctx.trace.Add("begin").Info("%d", found.Get("step"));
          node.Add({ inner: true }, { label: "inner" }).SetOutput([1]).Complete();
          const before = ctx.trace.IsComplete();
          ctx.trace.MarkComplete();
          const after = ctx.trace.IsComplete();
          node.Release();
          ctx.Release();
          return { metadata: { id: ctx.trace.id.length > 0, keys: space.Keys(), before, after } };
        }
        function Next(): agent.Next {
          return { data: { has: space.Has("step"), none: space.Get("none") } };
        }
    """,
    "tests/absent/src/index.ts": """
        import { agent } from "@yao/runtime";
        function Create(ctx: agent.Context): agent.Create {
          const told: string[] = [];
          for (const read of [() => ctx.vfs.ReadFile("a"), () => ctx.robot(), () => ctx.sandbox.Run("ls")]) {
            try { read(); } catch (error) { told.push(error.message); }
          }
          if (ctx.computer) told.push("a computer");
          return { metadata: { told } };
        }
        function Next(ctx: agent.Context): agent.Next {
          return { data: typeof ctx.workspace };
        }
    """,
    "tests/callers/src/index.ts": """
        import { agent } from "@yao/runtime";
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          const pieces: string[] = [];
          const one = ctx.agent.Call("tests.next-only", messages, { mode: "chat", skip: { history: true, trace: true, output: true }, onChunk: (message) => { pieces.push(message.props.content); return 0; } });
          const [first] = ctx.agent.Race([{ agent: "tests.plain", messages }, { agent: "tests.next-only", messages }]);
          const models = ctx.llm.All([{ connector: "small", messages, options: { temperature: 0.5, seed: 1, stop: ["x"] } }], { onChunk: (id, index, chunk) => 0 });
          const [any] = ctx.search.Any([{ type: "kb", query: "x", collections: ["town.rules"] }, { type: "web", query: "x" }]);
          let refused = "";
          try { http.Get("https://other.example/"); } catch (error) { refused = error.code; }
          return { metadata: { one: one.data, text: pieces.join("") === one.content, first: first.error, models: models.length, any: any.error ?? null, refused } };
        }
    """,
    "tests/memory/src/index.ts": """
        import { agent } from "@yao/runtime";
        interface Seen { words: string[] }
        function Create(ctx: agent.Context): agent.Create {
          const { context } = ctx.memory;
          context.Set("seen", { words: ["a"] } as Seen, 60000);
          context.Push("list", [1, 2, 3]);
          context.AddToSet("list", [3, 4]);
          const seen: Seen = context.Get("seen");
          return {
            metadata: {
              words: seen.words, page: context.ArrayPage("list", 2, 2), last: context.Pop("list"), rest: context.ArraySlice("list", -2),
              count: context.Incr("count", 2), none: context.Get("none"), keys: context.Keys(), gone: context.Del("se*"), all: context.Pull("list", 9),
            },
          };
        }
    """,
    "tests/next-only/src/index.ts": """
        import { agent } from "@yao/runtime";
        export function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
          const { id = "none" } = payload.completion.tool_calls?.[0] ?? {};
          return { data: { id, found: Process("models.permit.Get", { select: ["id", "fee"], wheres: [{ column: "kind", value: "dog" }], orders: [{ column: "id", option: "asc" }], limit: 1 })[0] ?? null } };
        }
    """,
    "tests/images/src/index.ts": """
        import { agent } from "@yao/runtime";
        function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
          const last = messages[messages.length - 1];
          const parts: agent.ContentPart[] = typeof last.content === "string" ? [{ type: "text", text: last.content }] : last.content;
          const images = parts.filter((part) => part.type === "image_url");
          return { messages: [{ role: "user", content: [...parts, { type: "text", text: `${images.length} images` }] }] };
        }
    """,
}
