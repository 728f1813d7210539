import type { SearchResult } from "groundhook";

const TITLES: Record<string, string> = { kb: "From the documents", db: "From the shop", web: "From the web" };

/** One section for each source that found something, best first. */
export function formatContext(results: SearchResult[]): string {
  const sections = results.filter((result) => result.items.length > 0).map(section);
  if (sections.length === 0) {
    return "Nothing was found. Say so, and answer only what you know for certain.";
  }
  return ["What was found, by source. Prefer sources that agree.", ...sections].join("\n\n");
}

function section(result: SearchResult): string {
  const lines = result.items.map((item) => `- ${item.title} ${item.citation_id}`);
  return [`${TITLES[result.type] ?? result.type} (${result.total} in all):`, ...lines].join("\n");
}
