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
  /** A toolkit. */
  export type ToolkitName = string;
  /** A tool; MCP servers may have others than are known here. */
  export type ToolName = string;

  /** The program that sent the request. */
  export interface Client {
    type: string;
    user_agent: string;
    ip: string;
  }

  /** The user, team and tenant of a request, set by the program that authenticated it. Hooks and models cannot change it. Every search filters by it. */
  export interface Identity {
    user_id: string;
    team_id: string;
    tenant_id: string;
    scope: string;
    constraints: Constraints;
  }

  /** Limits of an identity's access, set by the program that authenticated it. */
  export interface Constraints {
    owner_only: boolean;
    creator_only: boolean;
    editor_only: boolean;
    team_only: boolean;
    extra: Record<string, any>;
  }

  /** The argument of a Next hook. */
  export interface NextPayload {
    messages: Message[];
    completion: Completion | null;
    tools: ToolOutcome[];
    error: string | null;
    /** How far the answer can be trusted, as in `stream_end`: that of the best search whose items it cites; `none`: it cites nothing although sources were asked; null: no source was asked */
    certainty: "sure" | "partial" | "none" | null;
  }

  /** The answer of the model. */
  export interface Completion {
    content: string;
    model: string;
    finish_reason: string;
    usage: Usage;
    tool_calls: Record<string, any>[];
  }

  /** Tokens of a model call as the endpoint counts them; 0: not reported. */
  export interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
  }

  /** A tool call with its result or its error; the same value for every caller. */
  export interface ToolOutcome {
    /** Id of the call in the turn; empty outside */
    toolcall_id: string;
    /** The MCP server of the tool; empty: none */
    server: string;
    /** The owner's name of the tool: `<tool>` */
    tool: string;
    arguments: Record<string, any>;
    /** The tool's answer as JSON; null on an error */
    result: any;
    /** Reason of a failure; null without one */
    error: string | null;
    /** The name under which the tool was offered */
    name: string;
    /** The toolkit of the tool; empty: none */
    toolkit: string;
    /** Text for a model, uncut; empty in a Next hook */
    text: string;
    /** Citable items of the result, with their citation_id in a turn */
    items: Item[];
    warnings: string[];
    duration_ms: number;
    /** Code of the failure, for programs */
    code: "" | "wrong_arguments" | "unknown_tool" | "not_permitted" | "not_offered" | "not_found" | "timeout" | "rate_limited" | "service" | "failed";
  }

  /** One result of a search, immutable. */
  export interface Item {
    /** Marker of the item in answers */
    citation_id: string;
    type: "web" | "kb" | "db" | "api";
    title: string;
    /** The passage, snippet or record, as text */
    content: string;
    url: string;
    /** Relevance by the source, 0-1 */
    score: number;
    /** Weight of its origin: user, hook or auto */
    weight: number;
    /** kb: the document; api: the entry's id */
    document_id: string;
    /** kb: the collection; api: the API */
    collection: string;
    /** kb: place of the content in the document */
    extent: Extent | null;
    /** db: the model */
    model: string;
    /** db: the primary key */
    record_id: any;
    /** db: the record or the figures; kb: fields of the document */
    data: Record<string, any> | null;
    /** db: the query of figures (a count, a sum) */
    query: ComputedBy | null;
    /** web: date of publication, YYYY-MM-DD; empty: not known */
    published: string;
    /** web: `listed`: `content` is the snippet of the search engine; `fetched`: a passage of the page */
    status: "listed" | "fetched" | null;
    /** kb: other documents that have the very same passage */
    also: OtherPlace[];
  }

  /** The place of an item's content in its document: characters `start` to `end` of the text, counted from 0. `sentences` is set if the content is a part of a chunk. */
  export interface Extent {
    start: number;
    end: number;
    sentences: Sentences | null;
  }

  /** The sentences of a chunk that are an item's content, counted from 1. Rows of tables, entries of lists and lines of code count as sentences. */
  export interface Sentences {
    first: number;
    last: number;
    of: number;
  }

  /** The query that computed a figure, and the number of records. */
  export interface ComputedBy {
    dsl: Record<string, any>;
    rows: number;
  }

  /** Another document that has the very same passage. */
  export interface OtherPlace {
    title: string;
    url: string;
    document_id: string;
    collection: string;
  }

  /** The result of a Create hook. `answer` is the answer of the turn, as a text or as messages of the assistant: nothing is searched, and no model is asked. */
  export interface CreateReturn {
    answer?: string | AnswerMessage[] | null;
    messages?: Message[] | null;
    search?: boolean | SearchChoice | null;
    citation?: CitationOverride | null;
    temperature?: number | null;
    max_tokens?: number | null;
    max_completion_tokens?: number | null;
    connector?: ConnectorName | ConnectorName[] | null;
    prompt_preset?: string | null;
    disable_global_prompts?: boolean | null;
    mcp_servers?: (ServerName | Record<string, any>)[] | null;
    tools?: (ToolkitName | (string & {}) | Record<string, any>)[] | null;
    confirm?: string[] | null;
    uses?: Record<string, string> | null;
    metadata?: Record<string, any> | null;
    locale?: string | null;
    theme?: string | null;
    route?: string | null;
    delegate?: Delegation | null;
  }

  /** A message that a hook answers with. */
  export interface AnswerMessage {
    role?: "assistant";
    content: string;
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

  /** Create's `citation`: values for this turn in place of the configuration. */
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

  /** The result of a Next hook. */
  export interface NextReturn {
    data?: any;
    metadata?: Record<string, any> | null;
    delegate?: Delegation | null;
  }

  /** Options of a request. None: the value of the configuration. */
  export interface TurnOptions {
    search?: boolean | null;
    connector?: ConnectorName | ConnectorName[] | null;
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
    /** Maximum results to return (default 10) */
    limit?: number | null;
    /** Only results from these sites */
    sites?: string[] | null;
    /** No results from these sites (default: search.web.exclude_sites) */
    exclude_sites?: string[] | null;
    /** The same as `exclude_sites`. */
    excludeSites?: string[] | null;
    /** Only results of the last day, week, month or year */
    time_range?: "day" | "week" | "month" | "year" | null;
    /** The same as `time_range`. */
    timeRange?: "day" | "week" | "month" | "year" | null;
    /** Language of the results, such as `en` or `pt-BR` (default: search.web.language) */
    language?: string | null;
    /** First results whose pages are read (default: search.web.fetch) */
    fetch?: number | null;
    rerank?: RerankOptions | null;
  }

  /** The options of a reranking: `type` chooses the reranker, and the key of the same name its model, agent or server. */
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
    /** Maximum results to return (default 10) */
    limit?: number | null;
    /** Results to skip: pages of the same limit neither overlap nor leave gaps */
    offset?: number | null;
    /** Collections to search (default: the assistant's) */
    collections?: CollectionName[] | null;
    /** Minimum similarity, 0-1, the same scale for every embedding model */
    threshold?: number | null;
    /** Only documents that fulfil it: {"year": {"gte": 2020}, "tag": ["a", "b"]} */
    filter?: Filter | null;
    /** Count the documents that fulfil the filter, by values of these fields */
    facets?: string[] | null;
    /** Maximum passages of one document; true: its best one; false: no limit */
    groups?: number | boolean | null;
    /** Passages before and after each hit that are added to its content */
    neighbours?: number | null;
    /** The same as `neighbours`. */
    neighbors?: number | null;
    /** Tokens of the content: the part of a longer chunk that answers; 0: all */
    passage_tokens?: number | null;
    /** The same as `passage_tokens`. */
    passageTokens?: number | null;
    /** How far passages that repeat others are ranked down, 0-1; 0: not at all */
    diversity?: number | null;
    /** Id of a document: return its passages in reading order, instead of a search */
    document?: string | null;
    /** Also search the knowledge graph */
    graph?: boolean | null;
    rerank?: RerankOptions | null;
  }

  /** Options of `ctx.search.DB`. */
  export interface DBOptions {
    /** Maximum records to return */
    limit?: number | null;
    /** Models to query (default: the assistant's) */
    models?: ModelName[] | null;
    /** Conditions ANDed with those of the question */
    wheres?: Where[] | null;
    /** Sort orders */
    orders?: Order[] | null;
    /** Fields to return (default: all) */
    select?: string[] | null;
    /** Different combinations of the fields in `select` */
    distinct?: boolean | null;
    /** Fields to group by, or parts of dates: {"field": "paid_at", "by": "month"}; each group is one item */
    group_by?: (string | DateBucket)[] | null;
    /** The same as `group_by`. */
    groupBy?: (string | DateBucket)[] | null;
    /** Figures instead of records, one item for each group */
    aggregates?: Aggregate[] | null;
    /** Conditions on figures of each group, by their names */
    havings?: Where[] | null;
    /** Also return results beyond the limit that equal its last one in `orders` */
    ties?: boolean | null;
    /** Results to skip, in the same order */
    offset?: number | null;
    rerank?: RerankOptions | null;
  }

  /** A condition on a field, a condition on related records, or a group of conditions; conditions of a list are ANDed. */
  export interface Where {
    field?: string;
    /** The same as `field`. */
    column?: string;
    op?: string;
    value?: any;
    other?: Compared | null;
    or?: Where[] | null;
    and?: Where[] | null;
    /** The same as `and`. */
    wheres?: Where[] | null;
    related?: string;
    count?: Record<string, number> | null;
    none?: boolean;
    all?: boolean;
  }

  /** What a condition compares its field with in place of a value: another `field` of the same record, or, with `function`, one figure over all records of `model` (by default that of the condition) that meet `wheres`: `{"function": "avg", "field": "total"}`. */
  export interface Compared {
    field?: string;
    /** The same as `field`. */
    column?: string;
    function?: "count" | "sum" | "avg" | "min" | "max" | null;
    /** The same as `function`. */
    func?: "count" | "sum" | "avg" | "min" | "max" | null;
    /** The same as `function`. */
    fn?: "count" | "sum" | "avg" | "min" | "max" | null;
    distinct?: boolean;
    model?: string;
    wheres?: Where[];
  }

  /** A sort order; descending by default, as in QueryDSL. */
  export interface Order {
    field?: string;
    /** The same as `field`. */
    column?: string;
    order?: "asc" | "desc";
    /** The same as `order`. */
    sort?: "asc" | "desc";
  }

  /** A group of records by a part of a date, in UTC: `year` (2026), `quarter` ("2026-Q1"), `month` ("2026-01"), `week` ("2026-W05", ISO 8601), `day` ("2026-01-31"), `weekday` (1 is Monday), `hour` (0 to 23). `as` is its name in orders and results. */
  export interface DateBucket {
    field?: string;
    /** The same as `field`. */
    column?: string;
    by: "year" | "quarter" | "month" | "week" | "day" | "weekday" | "hour";
    as?: string;
  }

  /** A figure over the matching records: their number (`count` of `*`), or the sum, average, least or greatest value of a field. `as` is its name in orders and results. `distinct` counts different values. */
  export interface Aggregate {
    function?: "count" | "sum" | "avg" | "min" | "max";
    /** The same as `function`. */
    func?: "count" | "sum" | "avg" | "min" | "max";
    /** The same as `function`. */
    fn?: "count" | "sum" | "avg" | "min" | "max";
    field?: string;
    /** The same as `field`. */
    column?: string;
    as?: string;
    distinct?: boolean;
  }

  /** Options of a call of another assistant. */
  export interface AgentOptions {
    /** Whether it searches automatically; none: as configured */
    search?: boolean | null;
    /** Put this turn's conversation before the messages */
    history?: boolean;
    /** Show its text and its messages to the client as well */
    forward?: boolean;
    /** Connector of the model */
    connector?: string | null;
    temperature?: number | null;
    max_tokens?: number | null;
    locale?: string | null;
    /** `ctx.metadata` of its hooks */
    metadata?: Record<string, any>;
    /** Accepted, and nothing acts on it: a turn has no modes */
    mode?: string | null;
    /** The opposites of `search`, `history` and `forward`; and `trace` */
    skip?: Skipped;
  }

  /** Parts that a called assistant skips, in the spelling of some packages: `skip: {search: true}`. */
  export interface Skipped {
    search?: boolean | null;
    history?: boolean | null;
    output?: boolean | null;
    /** Leave its steps out of the trace; its `agent` node stays */
    trace?: boolean | null;
  }

  /** Options of a call of a language model. */
  export interface ModelOptions {
    top_p?: number | null;
    presence_penalty?: number | null;
    frequency_penalty?: number | null;
    /** Texts that end the answer */
    stop?: string[];
    seed?: number | null;
    /** As the endpoint takes it: {"type": "json_object"}; its type alone works too */
    response_format?: Record<string, any> | null;
    /** Such as `low`, `medium` or `high` */
    reasoning_effort?: string | null;
    temperature?: number | null;
    max_tokens?: number | null;
    max_completion_tokens?: number | null;
    /** Tools that the model may call, in the format of OpenAI's API */
    tools?: Record<string, any>[];
    /** Whether one of `tools` is called, and which, as OpenAI's API takes it */
    tool_choice?: "auto" | "none" | "required" | Record<string, any> | null;
    /** Sent to the endpoint as the end user's id */
    user?: string;
  }

  /** The result of one search. Of a failed search `error` is the reason and `items` is empty. */
  export interface SearchResult {
    /** `sure`: understood whole, and the result answers it; `partial`: something was left over, two readings fit, or the result is only near; `none`: nothing answers it; null: the source does not judge */
    certainty: "sure" | "partial" | "none" | null;
    /** db: the query as a sentence of labels; others: the query that was searched */
    read_as: string;
    /** Words of the question that became nothing, as typed */
    unread: string[];
    /** Other readings that fit as well */
    readings: OtherReading[];
    /** `builtin`, `connector:<id>`, the id of an assistant, or `mcp:<server>`; empty: the question was not read */
    read_by: string;
    /** For readers, in the language of the question: what was not understood, what is near, or why nothing was searched */
    explanation: string;
    type: "web" | "kb" | "db" | "api";
    query: string;
    source: "user" | "hook" | "auto";
    items: Item[];
    /** Matches, not only those that were returned */
    total: number;
    /** `at_least`: there are more than were counted (kb: 1,000) */
    total_is: "exact" | "at_least";
    duration_ms: number;
    error: string | null;
    /** web: the provider that answered */
    provider: string;
    /** kb: counts by field, the most frequent first */
    facets: Record<string, FacetCount[]> | null;
    graph_nodes: GraphNode[] | null;
    dsl: Record<string, any> | null;
  }

  /** Another way to read a question, which fits as well. */
  export interface OtherReading {
    /** The query as a sentence, in the language of the question */
    read_as: string;
    /** Records it finds; null: not counted */
    total: number | null;
  }

  /** The number of documents with a value. */
  export interface FacetCount {
    value: string | number | boolean;
    count: number;
  }

  /** An entity of a collection's graph that is related to the query. */
  export interface GraphNode {
    id: string;
    type: string;
    name: string;
    description: string;
    relation: string;
    score: number;
    metadata: Record<string, any>;
  }

  /** The answer of another assistant. `error` is the reason of a failure; `content` then has the text that had arrived. */
  export interface AgentResult {
    agent_id: string;
    content: string;
    citations: Cited[];
    /** `data` that its Next hook returned */
    data: any;
    /** `metadata` that its hooks returned */
    metadata: Record<string, any>;
    /** `stopped`: `onChunk` returned false */
    finish_reason: string;
    usage: Usage;
    error: string | null;
  }

  /** A marker of the answer in `stream_end`, which lists each once, in the order of first use. */
  export interface Cited {
    /** The marker as in the text */
    marker: string;
    verdict: "ok" | "earlier" | "unknown";
    title: string;
    url: string;
    type: "web" | "kb" | "db" | "api" | null;
    collection: string;
    document_id: string;
    /** Of a passage: its place in the document */
    extent: Extent | null;
    model: string;
    record_id: any;
    /** Of a figure, such as a count or a sum: its query */
    query: ComputedBy | null;
    /** Facts of the sentences that cite it which are not in it */
    missing: string[];
    /** The sentences that cite it and that `uses.verify` has judged */
    verified: VerifiedSentence[];
  }

  /** A sentence of an answer, and what `uses.verify` says of it. */
  export interface VerifiedSentence {
    /** The sentence, without its markers; cut where it is long */
    sentence: string;
    /** Whether its sources say all of it */
    supported: boolean;
    /** The words of a source that support it */
    quote: string;
  }

  /** The answer of a language model. `error` is the reason of a failure; `content` then has the text that had arrived. */
  export interface ModelResult {
    connector: string;
    content: string;
    model: string;
    /** `stopped`: `onChunk` returned false */
    finish_reason: string;
    /** {id, name, arguments} */
    tool_calls: Record<string, any>[];
    usage: Usage;
    error: string | null;
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
    /** Undefined here: hooks have no file system and start no programs; use an MCP server. */
    readonly sandbox?: any;
    /** Undefined here: hooks have no file system and start no programs; use an MCP server. */
    readonly computer?: any;
    /** Undefined here: hooks have no file system; keep values in ctx.memory. */
    readonly workspace?: any;
    /** Undefined here: hooks have no file system; keep values in ctx.memory. */
    readonly vfs?: any;
    /** Undefined here: there are no robots; call other assistants with ctx.agent.Call. */
    readonly robot?: any;
    /** Undefined here: use ctx.memory.context, ctx.memory.chat or ctx.memory.user. */
    readonly space?: any;
    /** Undefined here: use ctx.memory.context. */
    readonly shared?: any;
    /** Undefined here: use ctx.chat_id. */
    readonly sid?: any;
    /** Undefined here: use ctx.memory.chat. */
    readonly session?: any;
    /** Undefined here: use the hook's second argument, or ctx.chat.History(limit), which reads further. */
    readonly history?: any;
    /** Undefined here: the conversation is the hook's second argument. */
    readonly messages?: any;
    /** Undefined here: use ctx.authorized.user_id. */
    readonly user?: any;
    /** Undefined here: a called assistant is silent unless options.forward is true. */
    readonly silent?: any;
    readonly search: {
      /** Search the web; a failure is `error` of the result. */
      Web(query: string, options?: WebOptions): SearchResult;
      /** Search collections of the knowledge base; a failure is `error` of the result. */
      KB(query: string, options?: KBOptions): SearchResult;
      /** Query database models in plain words; a failure is `error` of the result. */
      DB(query: string, options?: DBOptions): SearchResult;
      /** Run several searches at once; return every result, in order. */
      Parallel(requests: SearchRequest[]): SearchResult[];
      /** Run several searches at once, as Parallel does. */
      All(requests: SearchRequest[]): SearchResult[];
      /** Run several searches at once; return the first result with items, in a list. */
      Any(requests: SearchRequest[]): SearchResult[];
      /** Run several searches at once; return the first result, in a list. */
      Race(requests: SearchRequest[]): SearchResult[];
      /** Return a whole document of a collection, passage by passage. */
      Document(collection: CollectionName, document: string): SearchResult;
    };
    /** Send a whole message to the client; return its id. */
    Send(message: OutputMessage | string, blockId?: string): string;
    /** Send a message that may grow until End, or until the hook ends; return its id. */
    SendStream(message: OutputMessage | string, blockId?: string): string;
    /** Append text to a message's text, or a value to the one at a path. */
    Append(id: string, content: any, path?: string): string;
    /** Replace a message with another one. */
    Replace(id: string, message: OutputMessage | string): string;
    /** Merge an object into a message's props, or into the object at a path. */
    Merge(id: string, data: any, path?: string): string;
    /** Set the value at a path of a message. */
    Set(id: string, data: any, path: string): string;
    /** End a message: a final text is appended to it, a final message replaces it. */
    End(id: string, final?: OutputMessage | string): string;
    /** End a block of messages, and the streams in it. */
    EndBlock(id: string): void;
    /** Return an id for a message that is sent later: {message_id: id, type, props}. */
    MessageID(): string;
    /** Return an id for a block of messages, the second argument of Send. */
    BlockID(): string;
    /** Return an id for a thread of messages: {thread_id: id, type, props}. */
    ThreadID(): string;
    readonly agent: {
      /** Call another assistant, which runs a turn of its own; return its answer. */
      Call(id: AssistantName, messages: string | Message | Message[], options?: AgentOptions & { onChunk?: OnChunk }): AgentResult;
      /** Call several assistants at once; return every answer, in the order of the requests. */
      All(requests: AgentRequest[], options?: { onChunk?: OnChunk }): AgentResult[];
      /** Call several assistants at once; return the first answer without an error, in a list, and cancel the others. */
      Any(requests: AgentRequest[], options?: { onChunk?: OnChunk }): AgentResult[];
      /** Call several assistants at once; return the first answer, in a list, and cancel the others. */
      Race(requests: AgentRequest[], options?: { onChunk?: OnChunk }): AgentResult[];
    };
    readonly llm: {
      /** Call a language model; return its answer. */
      Stream(connector: ConnectorName, messages: string | Message | Message[], options?: ModelOptions & { onChunk?: OnChunk }): ModelResult;
      /** Call several language models at once; return every answer, in the order of the requests. */
      All(requests: ModelRequest[], options?: { onChunk?: OnChunk }): ModelResult[];
      /** Call several language models at once; return the first answer without an error, in a list, and cancel the others. */
      Any(requests: ModelRequest[], options?: { onChunk?: OnChunk }): ModelResult[];
      /** Call several language models at once; return the first answer, in a list, and cancel the others. */
      Race(requests: ModelRequest[], options?: { onChunk?: OnChunk }): ModelResult[];
    };
    readonly trace: {
      /** Begin a node under the hook's own; return it. */
      Add(input?: any, options?: TraceOptions): TraceStep;
      /** Write a line to the node (info), printf style. */
      Info(...values: any[]): TraceStep;
      /** Write a line to the node (debug), printf style. */
      Debug(...values: any[]): TraceStep;
      /** Write a line to the node (warn), printf style. */
      Warn(...values: any[]): TraceStep;
      /** Write a line to the node (error), printf style. */
      Error(...values: any[]): TraceStep;
      /** Set the output of the node's step. */
      SetOutput(output: any): TraceStep;
      /** Set metadata of the node, from an object or from a key and its value. */
      SetMetadata(metadata: Record<string, any>): TraceStep;
      SetMetadata(key: string, value: any): TraceStep;
      /** Mark the node's step as done, with its output. */
      Complete(output?: any): TraceStep;
      /** Mark the node's step as failed, with the reason. */
      Fail(error?: any): TraceStep;
      /** Begin several nodes under the hook's own; return them in a list. */
      Parallel(inputs: { input?: any; option?: TraceOptions }[]): TraceStep[];
      /** Begin a node with values under the hook's own; return it. */
      CreateSpace(options?: TraceOptions): TraceSpace;
      /** Return a space of this turn by its id, or null if there is none. */
      GetSpace(id: string): TraceSpace | null;
      /** Return whether the node's step has ended. */
      IsComplete(): boolean;
      /** Mark the node's step as done, as Complete does. */
      MarkComplete(): TraceStep;
      /** Do nothing: open nodes end with the hook. */
      Release(): void;
    };
    /** Do nothing: open nodes end with the hook. */
    Release(): void;
    readonly mcp: {
      /** Return the tools of an MCP server that the assistant may use. */
      ListTools(server: ServerName): { tools: ServerTool[] };
      /** Call a tool of an MCP server; return its answer. */
      CallTool(server: ServerName, tool: string, arguments?: Record<string, any>): ToolAnswer;
      /** Call several tools of an MCP server, one after the other; return every answer. */
      CallTools(server: ServerName, calls: ToolRequest[]): ToolAnswer[];
      /** Call several tools of an MCP server at once; return every answer, in the order of the calls. */
      CallToolsParallel(server: ServerName, calls: ToolRequest[]): ToolAnswer[];
      /** Return the resources of an MCP server. */
      ListResources(server: ServerName): { resources: ServerResource[] };
      /** Read a resource of an MCP server; return its contents. */
      ReadResource(server: ServerName, uri: string): { contents: { uri: string; mimeType?: string; text?: string; blob?: string }[] };
      /** Return the prompts of an MCP server. */
      ListPrompts(server: ServerName): { prompts: ServerPrompt[] };
      /** Fill in a prompt of an MCP server; return its messages. */
      GetPrompt(server: ServerName, name: string, arguments?: Record<string, any>): { description?: string; messages: { role: string; content: ContentBlock }[] };
      /** Call tools of several MCP servers at once; return every answer, in the order of the calls. */
      All(calls: ({ server: ServerName } & ToolRequest)[]): ToolAnswer[];
      /** Call tools of several MCP servers at once; return the first answer without an error, in a list. */
      Any(calls: ({ server: ServerName } & ToolRequest)[]): ToolAnswer[];
      /** Call tools of several MCP servers at once; return the first answer, in a list. */
      Race(calls: ({ server: ServerName } & ToolRequest)[]): ToolAnswer[];
    };
    readonly tools: {
      /** Return the tools of this turn. */
      List(): OfferedTool[];
      /** Call a tool of this turn; return its outcome. */
      Call(name: ToolName, arguments?: Record<string, any>, options?: ToolCallOptions): ToolReturn;
    };
    readonly memory: {
      readonly user: {
        /** Return the value of a key in the user's memory, or null without one. */
        Get(key: string): any;
        /** Keep a value under a key in the user's memory, for `ttlMs` milliseconds or without limit. */
        Set(key: string, value: any, ttlMs?: number | null): void;
        /** Remove a key from the user's memory, or all that begin with `prefix` for `prefix*`; return whether there was one. */
        Del(key: string): boolean;
        /** Remove a key from the user's memory, as Del does. */
        Delete(key: string): boolean;
        /** Return whether a key exists in the user's memory. */
        Has(key: string): boolean;
        /** Return all keys in the user's memory, sorted. */
        Keys(): string[];
        /** Return the number of keys in the user's memory. */
        Len(): number;
        /** Remove all keys from the user's memory; return their number. */
        Clear(): number;
        /** Add `by`, or 1, to a number in the user's memory, which begins at 0; return the sum. */
        Incr(key: string, by?: number): number;
        /** Subtract `by`, or 1, from a number in the user's memory, which begins at 0; return the difference. */
        Decr(key: string, by?: number): number;
        /** Append values to a list in the user's memory; return its new length. */
        Push(key: string, values: any[]): number;
        /** Remove the last element of a list in the user's memory; return it, or null if the list is empty. */
        Pop(key: string): any;
        /** Remove the last `count` elements of a list in the user's memory; return them. */
        Pull(key: string, count: number): any[];
        /** Remove all elements of a list in the user's memory; return them. */
        PullAll(key: string): any[];
        /** Append the values that a list in the user's memory does not have; return its new length. */
        AddToSet(key: string, values: any[]): number;
        /** Return the length of a list in the user's memory. */
        ArrayLen(key: string): number;
        /** Return an element of a list in the user's memory, or null beyond its end; a negative index counts from the end. */
        ArrayGet(key: string, index: number): any;
        /** Replace an element of a list in the user's memory. */
        ArraySet(key: string, index: number, value: any): void;
        /** Return the elements of a list in the user's memory from `start` on, and before `end`. */
        ArraySlice(key: string, start: number, end?: number): any[];
        /** Return a page of a list in the user's memory; pages count from 1. */
        ArrayPage(key: string, page: number, size: number): any[];
        /** Return a list in the user's memory, empty without the key. */
        ArrayAll(key: string): any[];
        /** Remove a key from the user's memory; return its value, or null without one. */
        GetDel(key: string): any;
      };
      readonly team: {
        /** Return the value of a key in the team's memory, or null without one. */
        Get(key: string): any;
        /** Keep a value under a key in the team's memory, for `ttlMs` milliseconds or without limit. */
        Set(key: string, value: any, ttlMs?: number | null): void;
        /** Remove a key from the team's memory, or all that begin with `prefix` for `prefix*`; return whether there was one. */
        Del(key: string): boolean;
        /** Remove a key from the team's memory, as Del does. */
        Delete(key: string): boolean;
        /** Return whether a key exists in the team's memory. */
        Has(key: string): boolean;
        /** Return all keys in the team's memory, sorted. */
        Keys(): string[];
        /** Return the number of keys in the team's memory. */
        Len(): number;
        /** Remove all keys from the team's memory; return their number. */
        Clear(): number;
        /** Add `by`, or 1, to a number in the team's memory, which begins at 0; return the sum. */
        Incr(key: string, by?: number): number;
        /** Subtract `by`, or 1, from a number in the team's memory, which begins at 0; return the difference. */
        Decr(key: string, by?: number): number;
        /** Append values to a list in the team's memory; return its new length. */
        Push(key: string, values: any[]): number;
        /** Remove the last element of a list in the team's memory; return it, or null if the list is empty. */
        Pop(key: string): any;
        /** Remove the last `count` elements of a list in the team's memory; return them. */
        Pull(key: string, count: number): any[];
        /** Remove all elements of a list in the team's memory; return them. */
        PullAll(key: string): any[];
        /** Append the values that a list in the team's memory does not have; return its new length. */
        AddToSet(key: string, values: any[]): number;
        /** Return the length of a list in the team's memory. */
        ArrayLen(key: string): number;
        /** Return an element of a list in the team's memory, or null beyond its end; a negative index counts from the end. */
        ArrayGet(key: string, index: number): any;
        /** Replace an element of a list in the team's memory. */
        ArraySet(key: string, index: number, value: any): void;
        /** Return the elements of a list in the team's memory from `start` on, and before `end`. */
        ArraySlice(key: string, start: number, end?: number): any[];
        /** Return a page of a list in the team's memory; pages count from 1. */
        ArrayPage(key: string, page: number, size: number): any[];
        /** Return a list in the team's memory, empty without the key. */
        ArrayAll(key: string): any[];
        /** Remove a key from the team's memory; return its value, or null without one. */
        GetDel(key: string): any;
      };
      readonly chat: {
        /** Return the value of a key in the memory of this chat, or null without one. */
        Get(key: string): any;
        /** Keep a value under a key in the memory of this chat, for `ttlMs` milliseconds or without limit. */
        Set(key: string, value: any, ttlMs?: number | null): void;
        /** Remove a key from the memory of this chat, or all that begin with `prefix` for `prefix*`; return whether there was one. */
        Del(key: string): boolean;
        /** Remove a key from the memory of this chat, as Del does. */
        Delete(key: string): boolean;
        /** Return whether a key exists in the memory of this chat. */
        Has(key: string): boolean;
        /** Return all keys in the memory of this chat, sorted. */
        Keys(): string[];
        /** Return the number of keys in the memory of this chat. */
        Len(): number;
        /** Remove all keys from the memory of this chat; return their number. */
        Clear(): number;
        /** Add `by`, or 1, to a number in the memory of this chat, which begins at 0; return the sum. */
        Incr(key: string, by?: number): number;
        /** Subtract `by`, or 1, from a number in the memory of this chat, which begins at 0; return the difference. */
        Decr(key: string, by?: number): number;
        /** Append values to a list in the memory of this chat; return its new length. */
        Push(key: string, values: any[]): number;
        /** Remove the last element of a list in the memory of this chat; return it, or null if the list is empty. */
        Pop(key: string): any;
        /** Remove the last `count` elements of a list in the memory of this chat; return them. */
        Pull(key: string, count: number): any[];
        /** Remove all elements of a list in the memory of this chat; return them. */
        PullAll(key: string): any[];
        /** Append the values that a list in the memory of this chat does not have; return its new length. */
        AddToSet(key: string, values: any[]): number;
        /** Return the length of a list in the memory of this chat. */
        ArrayLen(key: string): number;
        /** Return an element of a list in the memory of this chat, or null beyond its end; a negative index counts from the end. */
        ArrayGet(key: string, index: number): any;
        /** Replace an element of a list in the memory of this chat. */
        ArraySet(key: string, index: number, value: any): void;
        /** Return the elements of a list in the memory of this chat from `start` on, and before `end`. */
        ArraySlice(key: string, start: number, end?: number): any[];
        /** Return a page of a list in the memory of this chat; pages count from 1. */
        ArrayPage(key: string, page: number, size: number): any[];
        /** Return a list in the memory of this chat, empty without the key. */
        ArrayAll(key: string): any[];
        /** Remove a key from the memory of this chat; return its value, or null without one. */
        GetDel(key: string): any;
      };
      readonly context: {
        /** Return the value of a key in the memory of this turn, or null without one. */
        Get(key: string): any;
        /** Keep a value under a key in the memory of this turn, for `ttlMs` milliseconds or without limit. */
        Set(key: string, value: any, ttlMs?: number | null): void;
        /** Remove a key from the memory of this turn, or all that begin with `prefix` for `prefix*`; return whether there was one. */
        Del(key: string): boolean;
        /** Remove a key from the memory of this turn, as Del does. */
        Delete(key: string): boolean;
        /** Return whether a key exists in the memory of this turn. */
        Has(key: string): boolean;
        /** Return all keys in the memory of this turn, sorted. */
        Keys(): string[];
        /** Return the number of keys in the memory of this turn. */
        Len(): number;
        /** Remove all keys from the memory of this turn; return their number. */
        Clear(): number;
        /** Add `by`, or 1, to a number in the memory of this turn, which begins at 0; return the sum. */
        Incr(key: string, by?: number): number;
        /** Subtract `by`, or 1, from a number in the memory of this turn, which begins at 0; return the difference. */
        Decr(key: string, by?: number): number;
        /** Append values to a list in the memory of this turn; return its new length. */
        Push(key: string, values: any[]): number;
        /** Remove the last element of a list in the memory of this turn; return it, or null if the list is empty. */
        Pop(key: string): any;
        /** Remove the last `count` elements of a list in the memory of this turn; return them. */
        Pull(key: string, count: number): any[];
        /** Remove all elements of a list in the memory of this turn; return them. */
        PullAll(key: string): any[];
        /** Append the values that a list in the memory of this turn does not have; return its new length. */
        AddToSet(key: string, values: any[]): number;
        /** Return the length of a list in the memory of this turn. */
        ArrayLen(key: string): number;
        /** Return an element of a list in the memory of this turn, or null beyond its end; a negative index counts from the end. */
        ArrayGet(key: string, index: number): any;
        /** Replace an element of a list in the memory of this turn. */
        ArraySet(key: string, index: number, value: any): void;
        /** Return the elements of a list in the memory of this turn from `start` on, and before `end`. */
        ArraySlice(key: string, start: number, end?: number): any[];
        /** Return a page of a list in the memory of this turn; pages count from 1. */
        ArrayPage(key: string, page: number, size: number): any[];
        /** Return a list in the memory of this turn, empty without the key. */
        ArrayAll(key: string): any[];
        /** Remove a key from the memory of this turn; return its value, or null without one. */
        GetDel(key: string): any;
      };
    };
    readonly chat: {
      /** Return the newest messages before the question, oldest first, at most `limit` (20): of a kept conversation also those beyond what the model is given. */
      History(limit?: number): EarlierMessage[];
    };
    /** Return the user's answer to a question, one of `choices` if there are any, or null where the user declined. Only in Create and Next of a kept conversation: the turn ends here, and the hook goes on with the answer in the next one. */
    Ask(question: string, choices?: string[]): string | null;
  }

  export type FilterValue = string | number | boolean;
  export type FieldFilter = FilterValue | FilterValue[] | null | {
    eq?: FilterValue; in?: FilterValue[]; exists?: boolean; not?: FieldFilter;
    gt?: FilterValue; gte?: FilterValue; lt?: FilterValue; lte?: FilterValue;
  };
  export type Filter = { [field: string]: FieldFilter | Filter | Filter[] };

  /** A message to the client, such as {type: "text", props: {content: "…"}}. */
  export interface OutputMessage {
    type: string;
    props?: Record<string, any>;
    message_id?: string;
    block_id?: string;
    thread_id?: string;
    [key: string]: any;
  }

  /** Text as it arrives. `index` is the position of the request it belongs to. */
  export interface Chunk {
    type: "text";
    index: number;
    content: string;
    props: { content: string };
  }

  /** Called with every piece of text that arrives; a number other than 0, or true, stops the call. */
  export type OnChunk =
    | ((chunk: Chunk) => number | boolean | void)
    | ((id: string, index: number, chunk: Chunk) => number | boolean | void);

  export interface AgentRequest {
    agent: AssistantName;
    messages: string | Message | Message[];
    options?: AgentOptions & { onChunk?: OnChunk };
  }

  export interface ModelRequest {
    connector: ConnectorName;
    messages: string | Message | Message[];
    options?: ModelOptions & { onChunk?: OnChunk };
  }

  /** A node of the turn's trace. Calls without an answer of their own return the node. */
  export interface TraceStep {
    readonly id: string;
    /** Begin a node under this one; return it. */
    Add(input?: any, options?: TraceOptions): TraceStep;
    /** Begin several nodes under this one; return them. */
    Parallel(inputs: { input?: any; option?: TraceOptions }[]): TraceStep[];
    Info(...values: any[]): TraceStep;
    Debug(...values: any[]): TraceStep;
    Warn(...values: any[]): TraceStep;
    Error(...values: any[]): TraceStep;
    SetOutput(output: any): TraceStep;
    SetMetadata(metadata: Record<string, any>): TraceStep;
    SetMetadata(key: string, value: any): TraceStep;
    Complete(output?: any): TraceStep;
    Fail(error?: any): TraceStep;
    /** Return whether the node's step has ended. */
    IsComplete(): boolean;
    MarkComplete(): TraceStep;
    Release(): void;
  }
  /** A node with values, which are in its metadata. */
  export interface TraceSpace extends TraceStep {
    Set(key: string, value: any): TraceSpace;
    Get(key: string): any;
    Has(key: string): boolean;
    Delete(key: string): TraceSpace;
    Clear(): TraceSpace;
    Keys(): string[];
  }
  export interface TraceOptions {
    label?: string;
    type?: string;
    [key: string]: any;
  }

  export interface ServerTool {
    name: string;
    title?: string;
    description?: string;
    inputSchema: Record<string, any>;
    outputSchema?: Record<string, any>;
    annotations?: Record<string, any>;
  }

  /** The answer of a tool of an MCP server. `result` is the answer as one value; `error` is set when
   * the tool failed. */
  export interface ToolAnswer {
    content?: ContentBlock[];
    structuredContent?: any;
    result?: any;
    isError?: boolean;
    error?: string;
    /** Of several calls: which one it was. */
    server?: string;
    tool?: string;
  }

  export interface ToolRequest {
    tool: string;
    arguments?: Record<string, any>;
  }

  export interface ServerResource {
    uri: string;
    name: string;
    description?: string;
    mimeType?: string;
    [key: string]: any;
  }

  /** A part of an MCP server's answer: text, an image, a resource. */
  export interface ContentBlock {
    type: string;
    text?: string;
    data?: string;
    mimeType?: string;
    [key: string]: any;
  }

  export interface ServerPrompt {
    name: string;
    description?: string;
    arguments?: { name: string; description?: string; required?: boolean }[];
    [key: string]: any;
  }

  /** A tool, as the model sees it. */
  export interface OfferedTool {
    name: ToolName;
    description: string;
    parameters: Record<string, any>;
  }

  /** The outcome of a tool call. */
  export interface ToolReturn {
    name: ToolName;
    result: any;
    error: string | null;
    /** The citable items of the result, each with its `citation_id`. */
    items: Item[];
  }
  /** Options of `ctx.tools.Call`. */
  export interface ToolCallOptions {
    /** Whether the items join the sources of the turn, as those of `ctx.search` do. */
    pool?: boolean;
  }

  /** A message of the conversation before the question of this turn. */
  export interface EarlierMessage {
    /** Empty where the conversation is not kept. */
    id: string;
    role: "user" | "assistant";
    content: string;
    /** What an answer cites. */
    citations: Cited[];
    /** Milliseconds since 1970; 0 where the conversation is not kept. */
    made_at: number;
  }

  /** The response, whatever its status. `code` is `status`; names of `headers` are in lower case;
   * `data` is the JSON value of a body of type JSON, else text; `message` is empty for a success,
   * else the status as text. */
  export interface HttpAnswer {
    status: number;
    code: number;
    message: string;
    url: string;
    headers: Record<string, string>;
    data: any;
  }

  export type HttpQuery = string | Record<string, any> | (string | Record<string, any>)[];
  export type HttpHeaders = Record<string, string | number> | Record<string, string | number>[];
}

declare var http: {
  /** Send a GET request to a declared host; return its response. */
  Get(url: string, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a POST request to a declared host; return its response. */
  Post(url: string, body?: any, files?: null, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a PUT request to a declared host; return its response. */
  Put(url: string, body?: any, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a PATCH request to a declared host; return its response. */
  Patch(url: string, body?: any, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a DELETE request to a declared host; return its response. */
  Delete(url: string, body?: any, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a HEAD request to a declared host; return its response. */
  Head(url: string, body?: any, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
  /** Send a request with any method to a declared host; return its response. */
  Send(method: string, url: string, body?: any, query?: import("groundhook").HttpQuery | null, headers?: import("groundhook").HttpHeaders | null): import("groundhook").HttpAnswer;
};

/** Return a text of the assistant's locales in the language of the turn, or the key if no locale has it. */
declare function $L(key: string): string;

/** Call a function by its name, one of text.ExtractJSON, text.HTMLToMarkdown, text.MarkdownToHTML, models.<id>.Find, models.<id>.Get, scripts.<file>.<function>, agents.<assistant>.<file>.<function>; another name throws. */
declare function Process(name: string, ...args: any[]): any;

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
  /** Wait for a number of milliseconds. */
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

declare function structuredClone<T>(value: T): T;

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

declare var WebAssembly: any;

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
  type AgentAPI = any;
  type LlmAPI = any;
  type MCP = any;
  type Memory = any;
  type MemoryNamespace = any;
  type Sandbox = any;
  type SearchAPI = any;
  type Trace = any;
}

declare namespace YaoAgent {
  type Create = agent.Create;
  type Next = agent.Next;
  type Attachment = agent.Attachment;
  type ContentPart = agent.ContentPart;
  type Context = agent.Context;
  type CreateHookResponse = agent.CreateHookResponse;
  type CreateOptions = agent.CreateOptions;
  type CreateResponse = agent.CreateResponse;
  type HookCreateResponse = agent.HookCreateResponse;
  type HookNextResponse = agent.HookNextResponse;
  type HookOptions = agent.HookOptions;
  type Message = agent.Message;
  type NextHookPayload = agent.NextHookPayload;
  type NextHookResponse = agent.NextHookResponse;
  type NextOptions = agent.NextOptions;
  type NextPayload = agent.NextPayload;
  type NextResponse = agent.NextResponse;
  type OutputMessage = agent.OutputMessage;
  type Payload = agent.Payload;
  type ToolCall = agent.ToolCall;
}

type YaoAgent = any;
type SearchType = "web" | "kb" | "db";
type Attachment = agent.Attachment;
type ContentPart = agent.ContentPart;
type Context = agent.Context;
type CreateHookResponse = agent.CreateHookResponse;
type CreateOptions = agent.CreateOptions;
type CreateResponse = agent.CreateResponse;
type HookCreateResponse = agent.HookCreateResponse;
type HookNextResponse = agent.HookNextResponse;
type HookOptions = agent.HookOptions;
type Message = agent.Message;
type NextHookPayload = agent.NextHookPayload;
type NextHookResponse = agent.NextHookResponse;
type NextOptions = agent.NextOptions;
type NextPayload = agent.NextPayload;
type NextResponse = agent.NextResponse;
type OutputMessage = agent.OutputMessage;
type Payload = agent.Payload;
type ToolCall = agent.ToolCall;
type CitationConfig = Record<string, any>;
type DBOptions = Record<string, any>;
type GraphNode = Record<string, any>;
type KBOptions = Record<string, any>;
type QueryOrder = Record<string, any>;
type QueryWhere = Record<string, any>;
type RerankOptions = Record<string, any>;
type Result = Record<string, any>;
type ResultItem = Record<string, any>;
type SearchRequest = Record<string, any>;
type SearchResult = Record<string, any>;
type WebOptions = Record<string, any>;

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
  export const http: typeof globalThis.http;
  export const Process: typeof globalThis.Process;
  export const console: typeof globalThis.console;
  export const log: typeof globalThis.log;
  export const time: typeof globalThis.time;
  export const Exception: typeof globalThis.Exception;
  export const atob: typeof globalThis.atob;
  export const btoa: typeof globalThis.btoa;
  export const queueMicrotask: typeof globalThis.queueMicrotask;
  export const setTimeout: typeof globalThis.setTimeout;
  export const clearTimeout: typeof globalThis.clearTimeout;
  export const setInterval: typeof globalThis.setInterval;
  export const clearInterval: typeof globalThis.clearInterval;
  export const structuredClone: typeof globalThis.structuredClone;
  export const WebAssembly: typeof globalThis.WebAssembly;
}

// The globals of test files (tests/*.test.ts); they have no `ctx`.

/** Declare a test. It fails when its function throws, or its promise is rejected. */
declare const test: {
  (name: string, body: () => void | Promise<void>): void;
  skip(name: string, body: () => void | Promise<void>): void;
};

/** Put a name before those of the tests declared inside. */
declare function describe(name: string, body: () => void): void;

/** Run one turn of the assistant, from the message to the last event. What `options` leaves out is answered from recordings. */
declare function turn(
  message: string | import("groundhook").Message[],
  options?: import("groundhook").TestOptions,
): import("groundhook").TestAnswer;

/** State what a value should be; `expect(value).not` states what it should not be. */
declare function expect(actual: any): import("groundhook").Expectation & { not: import("groundhook").Expectation };

declare module "groundhook" {
  /** Options of a turn: those of a request, the identity, and scripted answers of models and sources. */
  export interface TestOptions extends TurnOptions {
    /** Another assistant than the tests' own. */
    assistant?: AssistantName;
    identity?: Partial<Identity>;
    /** The time of day, ISO 8601, in place of the recordings'. */
    now?: string;
    /** Settings and prompts of this turn, as in package.yao. */
    trial?: Record<string, any>;
    /** The model's answers, in order; {ref:0} is the marker of the first source. */
    model?: (string | ScriptedReply)[];
    /** The results of a source, for every query or by query (`*`: any other). */
    searches?: { [type in "web" | "kb" | "db"]?: Finds | Record<string, Finds> };
  }

  /** Items or their titles; or the text of an error. */
  export type Finds = (string | Partial<Item>)[] | string;

  /** One answer of a scripted model. */
  export interface ScriptedReply {
    text?: string;
    /** Texts that the messages must contain. */
    expect?: string | string[];
    tool_calls?: { name: string; arguments?: Record<string, any> | string; id?: string }[];
    error?: { code: string; message: string; after?: number };
    [key: string]: any;
  }

  /** The outcome of a turn. */
  export interface TestAnswer {
    content: string;
    citations: Record<string, any>[];
    /** The searches in the order in which they began: the request, its origin (`source`), and the results. */
    searches: (Record<string, any> & { type: "web" | "kb" | "db" | "api"; query: string; source: string; items: Item[]; total: number; error: string | null })[];
    /** The messages that the hook sent. */
    messages: any[];
    /** How far the answer can be trusted; null: no source was asked, or none that it cites judges. */
    certainty: "sure" | "partial" | "none" | null;
    /** The data that Next returned. */
    data: any;
    metadata: Record<string, any>;
    model_calls: {
      connector: string;
      messages: any[];
      tools: string[];
      temperature: number | null;
      max_tokens: number | null;
      max_completion_tokens: number | null;
    }[];
    warnings: Report[];
    error: Report | null;
    events: any[];
  }

  /** A warning or an error, and where it comes from. */
  export interface Report {
    message: string;
    code: string;
    file: string;
    line: number;
    column: number;
    hint: string;
  }

  /** Each throws when it does not hold. */
  export interface Expectation {
    toBe(wanted: any): void;
    toEqual(wanted: any): void;
    /** Has the properties of `wanted`, and maybe more; a regular expression is searched for. */
    toMatchObject(wanted: object): void;
    toMatch(wanted: string | RegExp): void;
    toContain(wanted: any): void;
    toHaveLength(wanted: number): void;
    toBeGreaterThan(wanted: number): void;
    toBeGreaterThanOrEqual(wanted: number): void;
    toBeLessThan(wanted: number): void;
    toBeLessThanOrEqual(wanted: number): void;
    toBeTruthy(): void;
    toBeFalsy(): void;
    toBeNull(): void;
    toBeUndefined(): void;
    toBeDefined(): void;
    toThrow(wanted?: string | RegExp): void;
    /** Of a turn: searched there, for a query or with options. */
    toHaveSearched(type: "web" | "kb" | "db" | "api", what?: string | RegExp | object): void;
    /** Of a turn: the answer cites a source that contains this. */
    toHaveCited(what?: string | RegExp | object): void;
    /** Of a turn: the hook sent a message. */
    toHaveSent(what?: string | RegExp | object): void;
    /** Of a turn: Next returned data. */
    toHaveReturned(what?: any): void;
    /** Of a turn: it ended with an error. */
    toHaveFailed(what?: string | RegExp | object): void;
  }
}
