// The searches are recorded in answers.cassette.json; what the model says is written here.

test("a question is looked up in the documents, and the page that answers is cited", () => {
  const answer = turn("How is a hook kept from harming the host?", {
    model: ["A worker that dies is replaced {ref:0}."],
  });
  expect(answer.error).toBeNull();
  expect(answer).toHaveSearched("kb", "kept from harming");
  expect(answer).toHaveCited({ document_id: "hooks.md" });
  expect(answer.citations).toHaveLength(1);
});

test("the model is shown sources that were found", () => {
  const answer = turn("When is automatic search skipped?", { model: ["When the request says so {ref:0}."] });
  const prompt = answer.model_calls[0].messages.map((message) => message.content).join("\n");
  expect(prompt.match(/<source /g).length).toBeLessThan(answer.searches[0].items.length + 1);
});

test("a marker that no source has is not taken for a citation", () => {
  const answer = turn("When is automatic search skipped?", { model: ["So it is written #ref:zz99."] });
  expect(answer).not.toHaveCited();
  expect(answer.citations[0].verdict).toBe("unknown");
});

test("without documents the model still answers", () => {
  const answer = turn("What is a hook?", { searches: { kb: [] }, model: ["I do not know."] });
  expect(answer.content).toBe("I do not know.");
  expect(answer.searches[0].items).toEqual([]);
});
