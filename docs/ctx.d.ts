// What a hook of Groundhook may use: every call.
// Written by `groundhook types`; changes to this file are lost. In a hook:
//
//   import type { Context, CreateReturn, Message, NextPayload, NextReturn } from "groundhook";

declare module "groundhook" {
  /** A knowledge base collection. */
  export type CollectionName = string;
  /** A database model. */
  export type ModelName = string;
  /** A connector to a language model. */
  export type ConnectorName = string;
  /** An assistant. */
  export type AssistantName = string;
  /** An MCP server. */
  export type ServerName = string;
  /** A tool; MCP servers may have others than are known here. */
  export type ToolName = string;

  /** The program that sent the request. */
  export interface Client {
    type: string;
    user_agent: string;
    ip: string;
  }

  /** Who asks. It comes with the request and from nowhere else: no hook and no model can name another. */
  export interface Identity {
    user_id: string;
    team_id: string;
    tenant_id: string;
    scope: string;
    constraints: Constraints;
  }

  /** Limits on what an identity may see, as decided by whoever authenticated it. */
  export interface Constraints {
    owner_only: boolean;
    creator_only: boolean;
    editor_only: boolean;
    team_only: boolean;
    extra: Record<string, any>;
  }

  /** What a Next hook receives. */
  export interface NextPayload {
    messages: Message[];
    completion: Completion | null;
    tools: ToolOutcome[];
    error: string | null;
  }

  /** What the model answered. */
  export interface Completion {
    content: string;
    model: string;
    finish_reason: string;
    usage: Usage;
    tool_calls: Record<string, any>[];
  }

  /** Tokens as the model counted them; 0 where it did not say. */
  export interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
  }

  /** A tool call of the turn and what came of it. */
  export interface ToolOutcome {
    toolcall_id: string;
    server: string;
    tool: string;
    arguments: Record<string, any>;
    result: any;
    error: string | null;
  }

  /** What a Create hook may return. */
  export interface CreateReturn {
    messages?: Message[] | null;
    search?: boolean | SearchChoice | null;
    citation?: CitationOverride | null;
    temperature?: number | null;
    max_tokens?: number | null;
    max_completion_tokens?: number | null;
    connector?: ConnectorName | null;
    prompt_preset?: string | null;
    disable_global_prompts?: boolean | null;
    mcp_servers?: (ServerName | Record<string, any>)[] | null;
    uses?: Record<string, string> | null;
    metadata?: Record<string, any> | null;
    locale?: string | null;
    theme?: string | null;
    route?: string | null;
    delegate?: Delegation | null;
  }

  /** One message of the conversation. `content` is text or a list of parts ({type: "text", text}, {type: "data", data: {sources: […]}}, {type: "image_url", …}). */
  export interface Message {
    role: "system" | "developer" | "user" | "assistant" | "tool";
    content?: string | MessagePart[] | null;
    name?: string | null;
    tool_calls?: Record<string, any>[] | null;
    tool_call_id?: string | null;
    [key: string]: any;
  }

  /** Create's `search` in its long form: whether to search automatically, and which types. */
  export interface SearchChoice {
    need_search?: boolean;
    search_types?: ("web" | "kb" | "db")[] | null;
    /** The same as `search_types`. */
    types?: ("web" | "kb" | "db")[] | null;
    /** The same as `search_types`. */
    searchTypes?: ("web" | "kb" | "db")[] | null;
  }

  /** Create's `citation`: what it says replaces the configuration for this turn. */
  export interface CitationOverride {
    format?: string | null;
    auto_inject_prompt?: boolean | null;
    /** The same as `auto_inject_prompt`. */
    autoInjectPrompt?: boolean | null;
    custom_prompt?: string | null;
    /** The same as `custom_prompt`. */
    customPrompt?: string | null;
  }

  /** Hands the turn to another assistant. */
  export interface Delegation {
    agent_id: AssistantName;
    messages?: Message[];
    options?: Record<string, any>;
  }

  /** What a Next hook may return. */
  export interface NextReturn {
    data?: any;
    metadata?: Record<string, any> | null;
    delegate?: Delegation | null;
  }

  /** What a request may say beside its messages. None: follow the layers below. */
  export interface TurnOptions {
    search?: boolean | null;
    connector?: ConnectorName | null;
    temperature?: number | null;
    max_tokens?: number | null;
    rerank?: Record<string, any> | null;
    locale?: string;
    theme?: string;
    route?: string;
    referer?: string;
    accept?: string;
    chat_id?: string;
    client?: Client;
    metadata?: Record<string, any>;
  }

  /** Options of `ctx.search.Web`. */
  export interface WebOptions {
    /** Most results to return (default 10) */
    limit?: number | null;
    /** Only results from these sites */
    sites?: string[] | null;
    /** Only results of the last day, week, month or year */
    time_range?: "day" | "week" | "month" | "year" | null;
    /** The same as `time_range`. */
    timeRange?: "day" | "week" | "month" | "year" | null;
    rerank?: RerankOptions | null;
  }

  /** How to reorder: `type` picks the reranker, the key of the same name its model, agent or server. */
  export interface RerankOptions {
    type?: "score" | "model" | "agent" | "mcp" | null;
    model?: string | null;
    agent?: AssistantName | null;
    mcp?: string | null;
    top_k?: number | null;
    /** The same as `top_k`. */
    topK?: number | null;
    /** The same as `top_k`. */
    top_n?: number | null;
    /** The same as `top_k`. */
    topN?: number | null;
  }

  /** Options of `ctx.search.KB`. */
  export interface KBOptions {
    /** Most results to return (default 10) */
    limit?: number | null;
    /** Collections to search (default: the assistant's) */
    collections?: CollectionName[] | null;
    /** Least similarity, 0-1, the same scale for every embedding model */
    threshold?: number | null;
    /** Also walk the knowledge graph */
    graph?: boolean | null;
    rerank?: RerankOptions | null;
  }

  /** Options of `ctx.search.DB`. */
  export interface DBOptions {
    /** Most records to return */
    limit?: number | null;
    /** Models to query (default: the assistant's) */
    models?: ModelName[] | null;
    /** Conditions ANDed with those of the question */
    wheres?: Where[] | null;
    /** Sort orders */
    orders?: Order[] | null;
    /** Fields to return (default: all) */
    select?: string[] | null;
    rerank?: RerankOptions | null;
  }

  /** One condition on a model's field; conditions of a list are ANDed. */
  export interface Where {
    field?: string;
    /** The same as `field`. */
    column?: string;
    op?: string;
    value?: any;
  }

  /** A sort order; descending unless said, as in the query language hooks know. */
  export interface Order {
    field?: string;
    /** The same as `field`. */
    column?: string;
    order?: "asc" | "desc";
  }

  /** What one search answered. A failed search is a result too: `error` says what happened, `items` is empty. */
  export interface SearchResult {
    type: "web" | "kb" | "db";
    query: string;
    source: "user" | "hook" | "auto";
    items: Item[];
    total: number;
    duration_ms: number;
    error: string | null;
    graph_nodes: GraphNode[] | null;
    dsl: Record<string, any> | null;
  }

  /** One thing found. Never changed after it was handed over. */
  export interface Item {
    /** The marker as the model writes it */
    citation_id: string;
    type: "web" | "kb" | "db";
    title: string;
    /** The passage, snippet or record, as text */
    content: string;
    url: string;
    /** The source's own relevance, 0-1 */
    score: number;
    /** That of where it came from: user, hook or auto */
    weight: number;
    /** kb: the document */
    document_id: string;
    /** kb: the collection */
    collection: string;
    /** db: the model */
    model: string;
    /** db: the primary key */
    record_id: any;
    /** db: the record; kb: the document's fields */
    data: Record<string, any> | null;
  }

  /** An entity of a collection's graph, related to the query. */
  export interface GraphNode {
    id: string;
    type: string;
    name: string;
    description: string;
    relation: string;
    score: number;
    metadata: Record<string, any>;
  }

  /** A part of a message: text, an image, or sources of the user's own. */
  export interface MessagePart {
    type: string;
    text?: string;
    [key: string]: any;
  }

  /** One of several searches. */
  export type SearchRequest =
    | ({ type: "web"; query: string } & WebOptions)
    | ({ type: "kb"; query: string } & KBOptions)
    | ({ type: "db"; query: string } & DBOptions);

  /** Runs before the search and the model. */
  export type Create = (
    ctx: Context,
    messages: Message[],
    options: TurnOptions,
  ) => CreateReturn | null | void | Promise<CreateReturn | null | void>;

  /** Runs after the model. */
  export type Next = (
    ctx: Context,
    payload: NextPayload,
    options: TurnOptions,
  ) => NextReturn | null | void | Promise<NextReturn | null | void>;

  /** What a hook knows of its turn, and what it may ask of the host. */
  export interface Context {
    readonly chat_id: string;
    readonly assistant_id: string;
    readonly locale: string;
    readonly theme: string;
    readonly route: string;
    readonly referer: string;
    readonly accept: string;
    readonly client: Client;
    readonly metadata: Record<string, any>;
    /** Who asks, as the request said. */
    readonly authorized: Identity;
    readonly search: {
      /** Search the web. */
      Web(query: string, options?: WebOptions): SearchResult;
      /** Search knowledge base collections. */
      KB(query: string, options?: KBOptions): SearchResult;
      /** Query database models in plain words. */
      DB(query: string, options?: DBOptions): SearchResult;
      /** Several searches at once; every result, in order. */
      Parallel(requests: SearchRequest[]): SearchResult[];
      /** The same as Parallel. */
      All(requests: SearchRequest[]): SearchResult[];
      /** Several searches at once; the first that has items, in a list. */
      Any(requests: SearchRequest[]): SearchResult[];
      /** Several searches at once; the first that ends, in a list. */
      Race(requests: SearchRequest[]): SearchResult[];
    };
  }
}

declare var console: {
  /** Write a line to the log (info). */
  log(...values: any[]): void;
  /** Write a line to the log (info). */
  info(...values: any[]): void;
  /** Write a line to the log (debug). */
  debug(...values: any[]): void;
  /** Write a line to the log (debug). */
  trace(...values: any[]): void;
  /** Write a line to the log (warn). */
  warn(...values: any[]): void;
  /** Write a line to the log (error). */
  error(...values: any[]): void;
  /** Write a line to the log (info). */
  dir(...values: any[]): void;
  /** Write a line to the log (info). */
  table(...values: any[]): void;
};

declare var log: {
  /** Write a line to the log (debug), printf style. */
  Trace(...values: any[]): void;
  /** Write a line to the log (debug), printf style. */
  Debug(...values: any[]): void;
  /** Write a line to the log (info), printf style. */
  Info(...values: any[]): void;
  /** Write a line to the log (warn), printf style. */
  Warn(...values: any[]): void;
  /** Write a line to the log (error), printf style. */
  Error(...values: any[]): void;
};

declare var time: {
  /** Wait a number of milliseconds. */
  Sleep(ms: number): void;
};

/** An error with a code; `throw new Exception("not found", 404)` ends the turn. */
declare var Exception: {
  new (message: string, code?: number | string): Error & { code?: number | string };
  (message: string, code?: number | string): Error & { code?: number | string };
};

declare function atob(data: string): string;

declare function btoa(data: string): string;

declare class TextEncoder {
  readonly encoding: string;
  encode(data?: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label?: string);
  readonly encoding: string;
  decode(data?: ArrayBuffer | ArrayBufferView): string;
}

declare function queueMicrotask(callback: () => void): void;

declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number;

declare function clearTimeout(id?: number): void;

declare function setInterval(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number;

declare function clearInterval(id?: number): void;

declare namespace agent {
  type Context = import("groundhook").Context;
  type Message = import("groundhook").Message;
  type Payload = import("groundhook").NextPayload;
  type Create = import("groundhook").CreateReturn | null | void;
  type Next = import("groundhook").NextReturn | null | void;
  type CreateHookResponse = Create;
  type NextHookPayload = Payload;
  type NextHookResponse = Next;
}

declare module "@yao/agent" {
  export * from "groundhook";
  export type Response = import("groundhook").CreateReturn | import("groundhook").NextReturn;
}

declare module "@yao/runtime" {
  export * from "groundhook";
  import types = agent;
  export { types as agent };
}
