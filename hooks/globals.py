"""The handwritten part of `groundhook.d.ts`: declarations that neither a row of the table nor a
model describes.

`GLOBALS` has the declaration of each global; `hooks/api/table.py` decides which globals exist.
"""

from __future__ import annotations

SHARED = """\
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
"""

CONTEXT = """\
/** The data of a hook's turn, and the calls to the host. */
export interface Context {
  readonly chat_id: string;
  readonly assistant_id: string;
  /** The user's question as it is searched: a follow-up with what it needs of the conversation. */
  readonly question: string;
  readonly locale: string;
  readonly theme: string;
  readonly route: string;
  readonly referer: string;
  readonly accept: string;
  readonly client: Client;
  readonly metadata: Record<string, any>;
  /** The identity of the request. */
  readonly authorized: Identity;
"""

GLOBALS = {
    "Exception": (
        """\
/** An error with a code; `throw new Exception("not found", 404)` ends the turn. */
declare var Exception: {
  new (message: string, code?: number | string): Error & { code?: number | string };
  (message: string, code?: number | string): Error & { code?: number | string };
};
"""
    ),
    "atob": "declare function atob(data: string): string;\n",
    "btoa": "declare function btoa(data: string): string;\n",
    "TextEncoder": (
        """\
declare class TextEncoder {
  readonly encoding: string;
  encode(data?: string): Uint8Array;
}
"""
    ),
    "TextDecoder": (
        """\
declare class TextDecoder {
  constructor(label?: string);
  readonly encoding: string;
  decode(data?: ArrayBuffer | ArrayBufferView): string;
}
"""
    ),
    "WebAssembly": "declare var WebAssembly: any;\n",
    "structuredClone": "declare function structuredClone<T>(value: T): T;\n",
    "queueMicrotask": "declare function queueMicrotask(callback: () => void): void;\n",
    "setTimeout": (
        "declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args:"
        " any[]): number;\n"
    ),
    "clearTimeout": "declare function clearTimeout(id?: number): void;\n",
    "setInterval": (
        "declare function setInterval(callback: (...args: any[]) => void, ms?: number, ...args:"
        " any[]): number;\n"
    ),
    "clearInterval": "declare function clearInterval(id?: number): void;\n",
    "URLSearchParams": (
        """\
declare class URLSearchParams {
  constructor(init?: string | Iterable<[string, string]> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(each: (value: string, name: string, all: URLSearchParams) => void, self?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
"""
    ),
    "URL": (
        """\
declare class URL {
  constructor(url: string, base?: string | URL);
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  username: string;
  readonly searchParams: URLSearchParams;
  static canParse(url: string, base?: string | URL): boolean;
  static parse(url: string, base?: string | URL): URL | null;
  toString(): string;
  toJSON(): string;
}
"""
    ),
}

# The same types under the names that packages in the reference's dialect use; the globals can be
# imported from its runtime.
# Types of the parts of a context, which have no shape in this dialect.
_PARTS = (
    "AgentAPI",
    "LlmAPI",
    "MCP",
    "Memory",
    "MemoryNamespace",
    "Sandbox",
    "SearchAPI",
    "Trace",
)
# Types that packages in this dialect use without importing them, and under `YaoAgent`.
_UNIMPORTED = (
    "Attachment",
    "ContentPart",
    "Context",
    "CreateHookResponse",
    "CreateOptions",
    "CreateResponse",
    "HookCreateResponse",
    "HookNextResponse",
    "HookOptions",
    "Message",
    "NextHookPayload",
    "NextHookResponse",
    "NextOptions",
    "NextPayload",
    "NextResponse",
    "OutputMessage",
    "Payload",
    "ToolCall",
)
# Those of its searches.
_OF_SEARCHES = (
    "CitationConfig",
    "DBOptions",
    "GraphNode",
    "KBOptions",
    "QueryOrder",
    "QueryWhere",
    "RerankOptions",
    "Result",
    "ResultItem",
    "SearchRequest",
    "SearchResult",
    "WebOptions",
)
DIALECT = """\
declare namespace agent {
  /** As hooks of this dialect use it: answers are any, and absent parts undefined. */
  type Context = import("groundhook").Context & {
    readonly search: any;
    readonly agent: any;
    readonly llm: any;
    readonly mcp: any;
    readonly memory: any;
    readonly trace: any;
    readonly [part: string]: any;
  };
  type Message = { role: any; content: any; [key: string]: any };
  type Payload = {
    messages: Message[];
    completion: any;
    tools: any[];
    error?: any;
    [key: string]: any;
  };
  type Create = Record<string, any> | null | void;
  type Next = Record<string, any> | null | void;
  type CreateResponse = Create;
  type CreateHookResponse = Create;
  type HookCreateResponse = Create;
  type NextPayload = Payload;
  type NextHookPayload = Payload;
  type NextResponse = Next;
  type NextHookResponse = Next;
  type HookNextResponse = Next;
  type HookOptions = Record<string, any>;
  type CreateOptions = HookOptions;
  type NextOptions = HookOptions;
  type ContentPart = { type: any; [key: string]: any };
  type OutputMessage = Record<string, any>;
  type Attachment = Record<string, any>;
  type ToolCall = Record<string, any>;
@@parts@@}

declare namespace YaoAgent {
  type Create = agent.Create;
  type Next = agent.Next;
@@named@@}

type YaoAgent = any;
type SearchType = "web" | "kb" | "db";
@@unimported@@
declare module "@yao/agent" {
  export * from "groundhook";
  export type Context = agent.Context;
  export type AgentContext = agent.Context;
  export type Message = agent.Message;
  export type NextPayload = agent.Payload;
  export type Response = Record<string, any> | null | void;
}

declare module "@yao/runtime" {
  export * from "groundhook";
  import types = agent;
  export { types as agent };
@@values@@}
"""
for _mark, _lines in {
    "@@parts@@": [f"  type {name} = any;\n" for name in _PARTS],
    "@@named@@": [f"  type {name} = agent.{name};\n" for name in _UNIMPORTED],
    "@@unimported@@": [
        *(f"type {name} = agent.{name};\n" for name in _UNIMPORTED),
        *(f"type {name} = Record<string, any>;\n" for name in _OF_SEARCHES),
    ],
}.items():
    DIALECT = DIALECT.replace(_mark, "".join(_lines))
