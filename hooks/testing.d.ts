// What files of tests have beside the language (tests/*.test.ts), in the place of `ctx`.

/** Declare a test. It fails when its function throws, or its promise is rejected. */
declare const test: {
  (name: string, body: () => void | Promise<void>): void;
  skip(name: string, body: () => void | Promise<void>): void;
};

/** Put a name before those of the tests declared inside. */
declare function describe(name: string, body: () => void): void;

/** One turn of the assistant, from the message to the last event. What `options` does not say is answered as recorded. */
declare function turn(
  message: string | import("groundhook").Message[],
  options?: import("groundhook").TestOptions,
): import("groundhook").TestAnswer;

/** Say what a value should be; `expect(value).not` says what it should not. */
declare function expect(actual: any): import("groundhook").Expectation & { not: import("groundhook").Expectation };

declare module "groundhook" {
  /** What a test may say beside the message: what a request may say, who asks, and what the world answers. */
  export interface TestOptions extends TurnOptions {
    /** Another assistant than the tests' own. */
    assistant?: AssistantName;
    identity?: Partial<Identity>;
    /** Another time of day than the recordings', ISO 8601. */
    now?: string;
    /** What the model answers, in order; {ref:0} is the marker of the first source. */
    model?: (string | ScriptedReply)[];
    /** What a source finds, for every query or by query (`*`: any other). */
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

  /** What came of a turn. */
  export interface TestAnswer {
    content: string;
    citations: Record<string, any>[];
    /** Every search in the order in which they began: the request, who asked (`source`), and what was found. */
    searches: (Record<string, any> & { type: "web" | "kb" | "db"; query: string; source: string; items: Item[]; total: number; error: string | null })[];
    /** What the hook sent. */
    messages: any[];
    /** What Next returned. */
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
    warnings: Said[];
    error: Said | null;
    events: any[];
  }

  /** A warning or an error, and where it comes from. */
  export interface Said {
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
    /** Has what `wanted` says, and maybe more; a regular expression is searched for. */
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
    toHaveSearched(type: "web" | "kb" | "db", what?: string | RegExp | object): void;
    /** Of a turn: the answer cites a source in which something says this. */
    toHaveCited(what?: string | RegExp | object): void;
    /** Of a turn: the hook sent a message. */
    toHaveSent(what?: string | RegExp | object): void;
    /** Of a turn: Next returned data. */
    toHaveReturned(what?: any): void;
    /** Of a turn: it ended with an error. */
    toHaveFailed(what?: string | RegExp | object): void;
  }
}
