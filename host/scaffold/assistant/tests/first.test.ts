test("a greeting is answered without a search", () => {
  const answer = turn("Hello!");
  expect(answer.searches).toHaveLength(0);
});
