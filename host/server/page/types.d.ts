/** What the server sends, as far as the page reads it. For the type checker alone. */

export interface Item {
  citation_id: string;
  type: string;
  title: string;
  content: string;
  url: string;
  score: number;
  weight: number;
  collection: string;
  document_id: string;
  model: string;
  record_id: unknown;
  extent: { start: number; end: number } | null;
  query: { dsl: unknown; rows: number } | null;
  published: string;
  status: string | null;
  also?: { title: string; url: string; document_id: string; collection: string }[];
}

export interface Citation {
  marker: string;
  verdict: "ok" | "earlier" | "unknown";
  item: Item | null;
  missing?: string[];
  verified?: { sentence: string; supported: boolean; quote: string }[];
}

export type Node_ = string | Block;

export interface Block {
  type: string;
  children?: Node_[];
  text?: string;
  lang?: string;
  level?: number;
  start?: number;
  href?: string;
  head?: boolean;
  align?: string;
  marker?: string;
}

export interface Search {
  search_id: string;
  source: string;
  search_type: string;
  query: string;
  began: number;
  total: number;
  duration_ms: number;
  error: string | null;
  provider: string;
  complete: boolean;
  items: Item[];
  certainty?: string | null;
  read_as?: string;
  unread?: string[];
  explanation?: string;
  readings?: { read_as: string; total: number | null }[];
  tables?: LongTable[];
}

export interface LongTable {
  id: string;
  name: string;
  rows: number;
  total: number;
  total_is: string;
  language: string;
  csv: string;
}

export interface Attached {
  name: string;
  file: File | null;
  part: any;
}

export interface Tool {
  call_id: string;
  name: string;
  arguments: unknown;
  result: unknown;
  error: string | null;
  duration_ms: number;
  complete: boolean;
  progress: string;
}

export interface Message {
  message_id: string;
  message: any;
  ended: boolean;
}

export interface Ended {
  content: string;
  data: unknown;
  finish_reason: string;
  grounded: boolean | null;
  timings: Record<string, number>;
  usage: { total_tokens: number; cost?: number };
  message?: unknown;
  certainty?: string | null;
  claims?: {
    cited: number;
    supported: number;
    doubtful: number;
    uncited: number;
    verified: number;
    unsupported: number;
  } | null;
}

export interface Trouble {
  code: string;
  message: string;
  hint?: string;
  file?: string;
  line?: number;
}

/** A call that runs only when the reader approves it, or a question of a hook. */
export interface Pending {
  call_id: string;
  name: string;
  arguments: unknown;
  question?: string;
  choices?: string[];
}

/** A question with its answer, in whatever state it is. */
export interface Turn {
  id: string;
  resume: string;
  questionId: string;
  messageId: string;
  question: string;
  files: Attached[];
  questionSiblings: string[];
  siblings: string[];
  state: "running" | "waiting" | "done" | "broken";
  searches: Search[];
  citations: Map<string, Citation>;
  blocks: Block[];
  /** The number of blocks that have not changed since they were shown last. */
  unchanged: number;
  reasoning: string;
  tools: Tool[];
  messages: Message[];
  pending: Pending[];
  /** Whether the question is the reader's decision about calls, which is made once. */
  decision: boolean;
  troubles: Trouble[];
  warnings: Trouble[];
  end: Ended | null;
  feedback: { rating: number; comment: string } | null;
  now: number;
}

export interface Assistant {
  files: number;
  file_mb: number;
  id: string;
  name: string;
  description: string;
  placeholder: unknown;
  searches: string[];
}

export interface Me {
  name: string;
  user: string;
  scopes: string[];
  anonymous: boolean;
}

export interface Chat {
  id: string;
  assistant_id: string;
  title: string;
  changed_at: number;
  leaf: string;
}

/** A passage that a search of a collection found or left out. */
export interface Passage {
  document: string;
  content: string;
  start: number | null;
  end: number | null;
  score?: number;
  place: number | null;
  meaning: number | null;
  meaning_place: number | null;
  words: number | null;
  words_place: number | null;
  cut?: "" | "threshold" | "limit";
}

/** An answer of one column of the workbench. */
export interface TrialAnswer {
  question: number;
  column: number;
  content: string;
  blocks: Block[];
  citations: Citation[];
  certainty: string | null;
  usage: { total_tokens: number };
  timings: Record<string, number>;
  cost: number | null;
  ranking: any[];
  prompt?: any[];
  checks: Record<string, number>;
  lacks: string[];
  passed: boolean;
  errors: Trouble[];
}
