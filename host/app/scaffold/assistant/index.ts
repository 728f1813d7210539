import type { Context, CreateReturn, Message, NextPayload, NextReturn } from "groundhook";

const GREETING = /^(hi|hello|hey|thanks|thank you)\b.{0,20}$/i;

/** Runs before the search and the model. Null leaves the turn as it is: what package.yao names is searched. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const question = messages[messages.length - 1].content;
  if (typeof question !== "string") {
    return null;
  }
  if (!question.trim() || GREETING.test(question)) {
    return { search: false };
  }
  // ctx.question is the question with what a follow-up needs of the conversation.
  // What a hook finds can be cited like everything else. A search never throws: `error` says what happened.
  const found = ctx.search.KB(ctx.question, { collections: ["@@name@@"], limit: 5 });
  if (found.error) {
    console.warn(`the documents could not be searched: ${found.error}`);
  }
  return { search: false, metadata: { passages: found.items.length } };
}

/** Runs after the model. What it returns as `data` goes to the client with the end of the turn; null adds nothing. */
export function Next(ctx: Context, payload: NextPayload): NextReturn | null {
  return payload.error ? { data: { failed: payload.error } } : null;
}
