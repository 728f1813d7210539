// The queries were answered by the tables of assistants/shop/models; products.cassette.json holds what they found.

test("a brand and a price become conditions of the query", () => {
  const answer = turn("Products cheaper than $100 from Apple", { model: ["The first is {ref:0}."] });
  expect(answer).toHaveSearched("db", "cheaper than $100");
  const found = answer.searches[0].items;
  expect(found.length).toBeGreaterThan(0);
  for (const item of found) {
    expect(item.data.brand).toBe("Apple");
    expect(Number(item.data.price)).toBeLessThan(100);
  }
  expect(answer).toHaveCited({ model: "agents.shop.product" });
});

test("a database that does not answer is no reason to fail", () => {
  const answer = turn("Which product is cheapest?", {
    searches: { db: "the database is down" },
    model: ["The shop cannot be asked just now."],
  });
  expect(answer.error).toBeNull();
  expect(answer.searches[0].error).toContain("the database is down");
  expect(answer).not.toHaveCited();
});
