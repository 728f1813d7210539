import type { SearchRequest } from "groundhook";
import vocabulary from "./vocabulary.json";

/** The searches that fit a question: documents always, the shop's tables when it speaks of goods, the web for what is new. */
export function choose(query: string): SearchRequest[] {
  const words = new Set(query.toLowerCase().split(/[^\p{L}\p{N}]+/u));
  const mentions = (list: string[]) => list.some((word) => words.has(word));

  const requests: SearchRequest[] = [{ type: "kb", query, limit: 6 }];
  if (mentions(vocabulary.shop)) {
    requests.push({ type: "db", query, models: ["agents.shop.product"], limit: 10 });
  }
  if (mentions(vocabulary.news)) {
    requests.push({ type: "web", query, limit: 5, time_range: "month" });
  }
  return requests;
}
