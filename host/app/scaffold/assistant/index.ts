import type { Context, CreateReturn, Message, NextPayload, NextReturn } from "groundhook";

const GREETING = /^(hi|hello|hey|thanks|thank you)\b.{0,20}$/i;

/** Runs before the search and the model. With null, the turn searches what package.yao names. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const question = messages[messages.length - 1].content;
  if (typeof question !== "string") {
    return null;
  }
  if (!question.trim() || GREETING.test(question)) {
    // The answer of this turn: nothing is searched, and no model is asked.
    return { answer: "Glad to help. What would you like to know?" };
  }
  // ctx.question is the question as a self-contained one, also for a follow-up. The results of a
  // hook's search can be cited like all others. A search never throws: a failure is its `error`.
  const found = ctx.search.KB(ctx.question, { collections: ["@@name@@"], limit: 5 });
  if (found.error) {
    console.warn(`the documents could not be searched: ${found.error}`);
  }
  // search: false, since this hook has searched; true also searches all that package.yao names.
  return { search: false, metadata: { passages: found.items.length } };
}

/** Runs after the model. The client gets the returned `data` at the end of the turn. */
export function Next(ctx: Context, payload: NextPayload): NextReturn | null {
  return payload.error ? { data: { failed: payload.error } } : null;
}
