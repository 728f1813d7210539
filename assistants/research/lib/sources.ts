import type { SearchRequest } from "groundhook";
import vocabulary from "./vocabulary.json";

/** The searches that fit a question: documents always, the shop's tables when it speaks of goods, the web for what is new. */
export function choose(query: string): SearchRequest[] {
  const requests: SearchRequest[] = [{ type: "kb", query, limit: 6 }];
  const goods = clauses(query).filter((clause) => mentions(clause, vocabulary.shop));
  if (goods.length > 0) {
    requests.push({ type: "db", query: goods.join(" "), models: ["agents.shop.product"], limit: 10 });
  }
  if (mentions(query, vocabulary.news)) {
    requests.push({ type: "web", query, limit: 5, time_range: "month" });
  }
  return requests;
}

/** The questions of one message. Tables get only the questions for them: with a word that they lack they find nothing. */
function clauses(query: string): string[] {
  return query.split(/[?!;.]\s+|,?\s+and\s+(?=(?:how|what|when|where|which|who|why)\s)/i);
}

function mentions(text: string, list: string[]): boolean {
  const words = new Set(text.toLowerCase().split(/[^\p{L}\p{N}]+/u));
  return list.some((word) => words.has(word));
}
