// Evaluated after the TypeScript compiler, whose namespace is `ts`. Makes the buffer that an
// isolate starts with, and `__transpile(file, source, others)`, which returns JSON {code, mappings,
// errors: [{line, column, message}], requires: [{name, line, column}], values: [{name, kind, line,
// column}], functions, reexports, imports, names}. Lines and columns count from 0; those of
// `requires` are places in the emitted code. `values` are hooks' names that are bound to something
// other than a function; `functions` are those of signatures.js, `reexports` those of declared.js,
// `imports` the specifiers of all imports, those of types included, and `names` are those of
// named.js and the `otherwise` of signatures.js.
//
// `others` are the files whose types count too, {name: {source, targets}}, where `targets` are the
// files that imports mean, {specifier: name}; `file` is among them then.
//
// Values that are dropped or kept in a variable, and async functions that are passed on, go through
// `__groundhook.watched`: the error of a promise that is not awaited would be lost otherwise, since
// V8 reports it to its embedder in C++ only. What is caught goes through `__groundhook.caught`, the
// callbacks of promises that are called with errors through `__groundhook.catching`.
const { factory } = ts;

const callPrelude = (name, ...given) =>
  factory.createCallExpression(
    factory.createPropertyAccessExpression(factory.createIdentifier("__groundhook"), name),
    undefined,
    given,
  );

const watched = (node, ...more) => callPrelude("watched", node, ...more);

// Whether an expression may be a promise that it has just made.
function mayBePromise(node) {
  if (
    ts.isParenthesizedExpression(node) ||
    ts.isAsExpression(node) ||
    ts.isNonNullExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isTypeAssertionExpression(node)
  )
    return mayBePromise(node.expression);
  if (ts.isCallExpression(node))
    return (
      node.expression.kind !== SyntaxKind.SuperKeyword && node.expression.escapedText !== "require"
    );
  if (ts.isNewExpression(node)) return node.expression.escapedText === "Promise";
  if (ts.isConditionalExpression(node))
    return mayBePromise(node.whenTrue) || mayBePromise(node.whenFalse);
  if (!ts.isBinaryExpression(node)) return false;
  const logical = [
    SyntaxKind.AmpersandAmpersandToken,
    SyntaxKind.BarBarToken,
    SyntaxKind.QuestionQuestionToken,
  ];
  const assigning = [
    SyntaxKind.AmpersandAmpersandEqualsToken,
    SyntaxKind.BarBarEqualsToken,
    SyntaxKind.QuestionQuestionEqualsToken,
  ];
  const last = [SyntaxKind.EqualsToken, SyntaxKind.CommaToken, ...assigning, ...logical];
  return (
    last.includes(node.operatorToken.kind) &&
    (mayBePromise(node.right) ||
      (logical.includes(node.operatorToken.kind) && mayBePromise(node.left)))
  );
}

const isAsync = (node) =>
  (ts.isArrowFunction(node) || (ts.isFunctionExpression(node) && !node.asteriskToken)) &&
  node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.AsyncKeyword);

const mayGivePromises = (node) =>
  isAsync(node) ||
  ts.isIdentifier(node) ||
  ts.isPropertyAccessExpression(node) ||
  ts.isCallExpression(node) ||
  (ts.isArrowFunction(node) && mayBePromise(node.body));

// Passes what a catch clause catches through the prelude before the clause reads it.
function completeCaught(clause) {
  const name = clause.variableDeclaration?.name;
  if (!name) return clause;
  const simple = ts.isIdentifier(name);
  const error = simple ? name : factory.createUniqueName("error");
  const completed = callPrelude("caught", error);
  const first = simple
    ? factory.createExpressionStatement(completed)
    : factory.createVariableStatement(
        undefined,
        factory.createVariableDeclarationList(
          [factory.createVariableDeclaration(name, undefined, undefined, completed)],
          ts.NodeFlags.Let,
        ),
      );
  return factory.updateCatchClause(
    clause,
    factory.createVariableDeclaration(error),
    factory.updateBlock(clause.block, [first, ...clause.block.statements]),
  );
}

// The position of the callback that a promise calls with its error, by the method's name.
const CATCHING = { __proto__: null, catch: 0, then: 1 };

const throughPrelude = (context) => (file) => {
  const visit = (before) => {
    const node = ts.visitEachChild(before, visit, context);
    if (ts.isCatchClause(node)) return completeCaught(node);
    if (ts.isExpressionStatement(node)) {
      return mayBePromise(node.expression)
        ? factory.updateExpressionStatement(node, watched(node.expression))
        : node;
    }
    if (ts.isVoidExpression(node))
      return mayBePromise(node.expression)
        ? factory.updateVoidExpression(node, watched(node.expression))
        : node;
    if (ts.isVariableDeclaration(node) && node.initializer && mayBePromise(node.initializer)) {
      return factory.updateVariableDeclaration(
        node,
        node.name,
        node.exclamationToken,
        node.type,
        watched(node.initializer),
      );
    }
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const method = node.expression.name?.escapedText;
      const drops = method === "forEach" ? mayGivePromises : isAsync;
      const catches = (each, index) => index === CATCHING[method];
      if (!node.arguments?.some((each, index) => drops(each) || catches(each, index))) return node;
      const passed = node.arguments.map((each, index) => {
        const kept = drops(each) ? watched(each, factory.createNumericLiteral(1)) : each;
        return catches(each, index) ? callPrelude("catching", kept) : kept;
      });
      return ts.isCallExpression(node)
        ? factory.updateCallExpression(node, node.expression, node.typeArguments, passed)
        : factory.updateNewExpression(node, node.expression, node.typeArguments, passed);
    }
    return node;
  };
  return ts.visitNode(file, visit);
};

const KINDS = {
  [SyntaxKind.NumericLiteral]: "number",
  [SyntaxKind.StringLiteral]: "string",
  [SyntaxKind.NoSubstitutionTemplateLiteral]: "string",
  [SyntaxKind.TemplateExpression]: "string",
  [SyntaxKind.TrueKeyword]: "boolean",
  [SyntaxKind.FalseKeyword]: "boolean",
  [SyntaxKind.ObjectLiteralExpression]: "object",
  [SyntaxKind.ArrayLiteralExpression]: "list",
  [SyntaxKind.RegularExpressionLiteral]: "pattern",
  [SyntaxKind.ClassDeclaration]: "class",
  [SyntaxKind.ClassExpression]: "class",
  [SyntaxKind.EnumDeclaration]: "enum",
};

const isDefaultExport = (node) =>
  node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.DefaultKeyword);

const isStatic = (node) =>
  node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.StaticKeyword);

// Names of hooks that are bound to something that the host cannot call.
function valuesIn(parsed) {
  const declared = parsed.statements.flatMap((statement) =>
    ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement],
  );
  const kindOf = (node) =>
    node?.asteriskToken
      ? "generator"
      : node && ts.isMethodDeclaration(node)
        ? "method"
        : node && KINDS[node.kind];
  const methods = declared
    .filter((each) => ts.isClassDeclaration(each) && isDefaultExport(each))
    .flatMap((each) => each.members)
    .filter((each) => ts.isMethodDeclaration(each) && !isStatic(each));
  return [...declared, ...methods]
    .filter((each) => ["Create", "Next"].includes(each.name?.text))
    .flatMap((each) => {
      const kind = kindOf(ts.isVariableDeclaration(each) ? each.initializer : each);
      const at = parsed.getLineAndCharacterOfPosition(each.name.end - each.name.text.length);
      return kind ? [{ name: each.name.text, kind, line: at.line, column: at.character }] : [];
    });
}

const parse = (name, source) => ts.createSourceFile(name, source, ts.ScriptTarget.ES2022, true);

globalThis.__transpile = (file, source, others) => {
  const result = ts.transpileModule(source, {
    fileName: file,
    reportDiagnostics: true,
    transformers: { before: [throughPrelude] },
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
      allowJs: true,
      sourceMap: true,
    },
  });
  const errors = result.diagnostics
    .filter((entry) => entry.category === ts.DiagnosticCategory.Error)
    .map((entry) => {
      const at = entry.file
        ? entry.file.getLineAndCharacterOfPosition(entry.start)
        : { line: 0, character: 0 };
      return {
        line: at.line,
        column: at.character,
        message: ts.flattenDiagnosticMessageText(entry.messageText, "; "),
      };
    });
  const code = result.outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "");
  const starts = ts.computeLineStarts(code);
  const requires = ts.preProcessFile(code, true, true).importedFiles.map((entry) => {
    const at = ts.computeLineAndCharacterOfPosition(starts, entry.pos);
    return { name: entry.fileName, line: at.line, column: at.character };
  });
  const files = { __proto__: null, [file]: { targets: {}, source }, ...others };
  for (const [name, each] of Object.entries(files)) each.parsed = parse(name, each.source);
  const { parsed } = files[file],
    { mappings } = JSON.parse(result.sourceMapText),
    { functions, otherwise } = functionsIn(parsed, declarationsOf(files));
  return JSON.stringify({
    code,
    mappings,
    errors,
    requires,
    values: valuesIn(parsed),
    functions,
    reexports: reexportsIn(parsed),
    names: [...namesIn(parsed), ...otherwise],
    imports: [
      ...new Set(
        ts.preProcessFile(source, true, true).importedFiles.map((entry) => entry.fileName),
      ),
    ],
  });
};
Object.defineProperty(new SharedArrayBuffer(16), "native", { set() {} });
