import type { Context, CreateReturn, Message } from "groundhook";

/** Find documents for the question; the answer is made of their summaries. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const query = messages[messages.length - 1]?.content;
  if (typeof query !== "string" || !query.trim()) {
    return null;
  }
  if (!ctx.tools.List().some((tool) => tool.name === "search_documents")) {
    return null; // not in this scope
  }
  const found = ctx.tools.Call("search_documents", { query }, { pool: true });
  if (found.error) {
    throw new Error(found.error);
  }
  return null;
}
