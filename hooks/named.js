// Evaluated before transpile.js. Makes `namesIn(parsed)`: the collections and models that calls of
// `ctx.search` in a source file name in literals, [{noun, name, line, column}]. Lines and columns
// count from 0. Calculated names are omitted. Nothing is executed.
const namesIn = (() => {
  const COLLECTIONS = ["collection", "collections"],
    MODELS = ["model", "models"]; // what is named, and the option that names it
  const OPTIONS = { __proto__: null, KB: [COLLECTIONS], DB: [MODELS] };
  const TOGETHER = ["All", "Any", "Parallel", "Race"];
  const bare = (node) =>
    node &&
    (ts.isAsExpression(node) ||
      ts.isSatisfiesExpression(node) ||
      ts.isParenthesizedExpression(node))
      ? bare(node.expression)
      : node;
  const elementsOf = (written) => {
    const node = bare(written);
    return node && ts.isArrayLiteralExpression(node) ? node.elements.map(bare) : [];
  };
  const optionOf = (written, name) => {
    const node = bare(written);
    if (!node || !ts.isObjectLiteralExpression(node)) return undefined;
    return bare(
      node.properties.filter(ts.isPropertyAssignment).find((each) => each.name.text === name)
        ?.initializer,
    );
  };
  // The method of `….search` that a call is for.
  const methodOf = ({ expression }) =>
    ts.isPropertyAccessExpression(expression) &&
    ts.isPropertyAccessExpression(expression.expression) &&
    expression.expression.name.text === "search"
      ? expression.name.text
      : "";

  return (parsed) => {
    const found = [];
    const add = (noun, node) => {
      if (!node || !ts.isStringLiteralLike(node) || node.text === "") return;
      const at = parsed.getLineAndCharacterOfPosition(node.getStart(parsed));
      found.push({ noun, name: node.text, line: at.line, column: at.character });
    };
    const read = (options, kinds) => {
      for (const [noun, option] of kinds) {
        const written = optionOf(options, option);
        for (const each of [written, ...elementsOf(written)]) add(noun, each);
      }
    };
    const visit = (node) => {
      const method = ts.isCallExpression(node) ? methodOf(node) : "";
      if (method in OPTIONS) read(node.arguments[1], OPTIONS[method]);
      if (method === "Document") add("collection", bare(node.arguments[0]));
      if (TOGETHER.includes(method))
        for (const each of elementsOf(node.arguments[0])) read(each, [COLLECTIONS, MODELS]);
      ts.forEachChild(node, visit);
    };
    visit(parsed);
    return found;
  };
})();
