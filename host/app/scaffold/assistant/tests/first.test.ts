// `groundhook test @@name@@` runs this offline: the results of searches and the answers of the model
// are in the tests. Without them, `groundhook test @@name@@ --record` records real ones.

test("a greeting is answered without a search and without a model", () => {
  const answer = turn("Hello!");
  expect(answer.searches).toHaveLength(0);
  expect(answer.content).toContain("Glad to help");
});

test("a question is looked up, and the answer cites what was found", () => {
  const answer = turn("How do I add documents?", {
    searches: { kb: [{ title: "Welcome", content: "Documents are added with groundhook kb add." }] },
    model: ["With groundhook kb add {ref:0}."],
  });
  expect(answer).toHaveSearched("kb", { query: /documents/, limit: 5 });
  expect(answer).toHaveCited("Welcome");
  expect(answer.error).toBeNull();
});
