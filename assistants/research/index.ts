import { formatContext } from "./lib/context";
import { choose } from "./lib/sources";
import type { Context, CreateReturn, Message, NextPayload, NextReturn } from "groundhook";

/** Search every fitting source at the same time, and hand the model one context. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const query = lastUserText(messages);
  if (query === "") {
    return null;
  }
  const results = ctx.search.Parallel(choose(query));
  for (const result of results) {
    if (result.error) {
      console.warn(`${result.type} search failed: ${result.error}`);
    }
  }
  return {
    messages: [{ role: "system", content: formatContext(results) }],
    metadata: { sources: results.map((result) => ({ type: result.type, items: result.items.length })) },
  };
}

/** Tell the client how much was found and how the answer ended. */
export function Next(ctx: Context, payload: NextPayload): NextReturn {
  const characters = payload.completion?.content.length ?? 0;
  return { data: { characters, failed: payload.error ?? null } };
}

function lastUserText(messages: Message[]): string {
  const last = [...messages].reverse().find((message) => message.role === "user");
  if (last === undefined) {
    return "";
  }
  if (typeof last.content === "string") {
    return last.content.trim();
  }
  return (last.content ?? []).map((part) => part.text ?? "").join("\n").trim();
}
