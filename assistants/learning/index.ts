import type { Context, CreateReturn, Message } from "groundhook";

/** Search sections for the question and the course that the request names in its metadata. */
export function Create(ctx: Context, messages: Message[]): CreateReturn | null {
  const userIntent = messages[messages.length - 1]?.content;
  if (typeof userIntent !== "string" || !userIntent.trim()) {
    return null;
  }
  const course = ctx.metadata.course ?? {};
  const courseContext = {
    courseId: String(course.id ?? ""),
    title: String(course.title ?? ""),
    outcomes: course.outcomes ?? [],
  };
  const found = ctx.tools.Call("searchResources", { userIntent, courseContext }, { pool: true });
  if (found.error) {
    throw new Error(found.error);
  }
  return null;
}
