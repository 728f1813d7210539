import { choose } from "../lib/sources";

const NEWS = [{ title: "Search engines in March", url: "https://example.org/march", content: "Engines were merged in March." }];
const PAGES = [{ title: "Turns", document_id: "turns.md", content: "Duplicates keep the version with the highest priority." }];

describe("which sources are searched", () => {
  test("documents always", () => {
    expect(choose("What is a hook?").map((request) => request.type)).toEqual(["kb"]);
  });

  test("the shop only what is meant for it", () => {
    const requests = choose("Which product is cheapest, and how are results merged?");
    expect(requests).toMatchObject([{ type: "kb" }, { type: "db", query: "Which product is cheapest" }]);
  });

  test("the shop for what it sells, the web for what is new", () => {
    expect(choose("Which product is cheapest?").map((request) => request.type)).toEqual(["kb", "db"]);
    expect(choose("latest news on search")).toMatchObject([{ type: "kb" }, { type: "web", time_range: "month" }]);
  });
});

test("what was found goes to the model by source, and is cited", () => {
  const answer = turn("What is the latest on merging?", {
    searches: { kb: PAGES, web: NEWS },
    model: ["Duplicates keep the best version {ref:0}, and engines were merged {ref:1}."],
  });
  expect(answer).toHaveSearched("web", { time_range: "month" });
  expect(answer).toHaveCited("Turns");
  expect(answer).toHaveCited("https://example.org/march");
  expect(answer.model_calls[0].messages.map((m) => m.content).join("\n")).toContain("From the web (1 in all)");
  expect(answer).toHaveReturned({ failed: null });
  expect(answer.metadata.sources).toEqual([{ type: "kb", items: 1 }, { type: "web", items: 1 }]);
});

test("a source that fails is omitted, and the others still answer", () => {
  const answer = turn("What is the latest on merging?", {
    searches: { kb: PAGES, web: "no key" },
    model: [{ text: "Duplicates keep the best version {ref:0}.", expect: "From the documents" }],
  });
  expect(answer.error).toBeNull();
  expect(answer).toHaveCited("Turns");
});

test("the client receives the error of a failed model", () => {
  const answer = turn("What is a hook?", { searches: { kb: PAGES }, model: [{ error: { code: "refused", message: "no" } }] });
  expect(answer).toHaveFailed({ code: "model_refused" });
  expect(answer).toHaveReturned({ failed: /no/ });
});
