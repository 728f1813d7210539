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
