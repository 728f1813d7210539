import type { Context, CreateReturn, Message } from "groundhook";

const SHELVES = ["backend", "qa", "ops"];
const READ = 5; // memories that are read whole

/** Search the previews of every shelf at once, and read the best memories whole. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const query = messages[messages.length - 1]?.content;
  if (typeof query !== "string" || !query.trim()) {
    return null;
  }
  const previews = SHELVES.flatMap((collection) => {
    const found = ctx.tools.Call("search", { query, collection, limit: READ });
    if (found.error) {
      throw new Error(found.error);
    }
    return found.result.map((preview: { id: number; score: number }) => ({ ...preview, collection }));
  });
  const best = previews.sort((one, other) => other.score - one.score).slice(0, READ);
  ctx.tools.Call("batch_fetch", { doc_refs: best.map((one) => [one.id, one.collection]) }, { pool: true });
  return null;
}
