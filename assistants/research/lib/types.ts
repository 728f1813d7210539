/** The parts of a hook's world that this package uses. */

export interface Message {
  role: string;
  content: string | { type: string; text?: string }[];
}

export interface SearchRequest {
  type: "web" | "kb" | "db";
  query: string;
  limit?: number;
  collections?: string[];
  models?: string[];
  time_range?: "day" | "week" | "month" | "year";
}

export interface SearchResult {
  type: string;
  query: string;
  items: { citation_id: string; title: string; content: string; url: string; score: number }[];
  total: number;
  duration_ms: number;
  error?: string | null;
}

export interface Context {
  assistant_id: string;
  search: {
    Web(query: string, options?: object): SearchResult;
    KB(query: string, options?: object): SearchResult;
    DB(query: string, options?: object): SearchResult;
    Parallel(requests: SearchRequest[]): SearchResult[];
  };
}

export interface CreateReturn {
  messages?: Message[];
  metadata?: Record<string, unknown>;
}

export interface NextPayload {
  completion?: { content: string };
  error?: string;
}

export interface NextReturn {
  data?: unknown;
}
