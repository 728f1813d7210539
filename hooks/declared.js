// Evaluated between the TypeScript compiler and signatures.js. Makes `declarationsOf(files)`:
// `files` are {name: {parsed, targets}}, a package's source files, each with the files that its
// imports mean, {specifier: name}. It returns `find(name, parsed)`: the interface, type, enum or
// member of an enum that a name means in a file; undefined if it is in none of these files.
// `isImported(name, parsed)` is whether the file imports it. Nothing of a file is executed.
const { SyntaxKind } = ts;
const isDeclaration = (node) =>
  ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node);
const originalOf = (each) => (each.propertyName ?? each.name).text;

// What the names that a file imports mean: {from, name}; the name is "*" for all that the other
// file exports.
const importsIn = (parsed) => {
  const imported = new Map();
  for (const statement of parsed.statements) {
    if (!ts.isImportDeclaration(statement) || !statement.importClause) continue;
    const { name, namedBindings } = statement.importClause,
      from = statement.moduleSpecifier.text;
    if (name) imported.set(name.text, { from, name: "default" });
    if (namedBindings && ts.isNamespaceImport(namedBindings))
      imported.set(namedBindings.name.text, { from, name: "*" });
    for (const each of namedBindings?.elements ?? [])
      imported.set(each.name.text, { from, name: originalOf(each) });
  }
  return imported;
};

// What a source file exports of other files: [{from, names}], where `names` maps exported names to
// those in the other file (null: all of them), last.
const reexportsIn = (parsed) => {
  const imported = importsIn(parsed),
    found = [];
  for (const statement of parsed.statements) {
    if (!ts.isExportDeclaration(statement)) continue;
    const { moduleSpecifier, exportClause } = statement;
    if (moduleSpecifier && !exportClause) found.push({ from: moduleSpecifier.text, names: null });
    for (const each of exportClause?.elements ?? []) {
      const source = moduleSpecifier
        ? { from: moduleSpecifier.text, name: originalOf(each) }
        : imported.get(originalOf(each));
      if (source && source.name !== "*")
        found.push({ from: source.from, names: { [each.name.text]: source.name } });
    }
  }
  return found.sort((one, other) => (one.names === null) - (other.names === null));
};

const declarationsOf = (files) => {
  const scopes = new Map();

  // The declarations of a file by name, and by the names under which it exports them.
  function scopeOf(parsed) {
    if (scopes.has(parsed)) return scopes.get(parsed);
    const own = new Map(),
      exported = new Map();
    for (const statement of parsed.statements) {
      if (isDeclaration(statement)) own.set(statement.name.text, statement);
      if (
        isDeclaration(statement) &&
        statement.modifiers?.some((each) => each.kind === SyntaxKind.DefaultKeyword)
      )
        exported.set("default", statement.name.text);
      if (ts.isExportAssignment(statement)) exported.set("default", statement.expression.text);
      if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier) continue;
      for (const each of statement.exportClause?.elements ?? [])
        exported.set(each.name.text, originalOf(each));
    }
    const scope = { own, exported, imported: importsIn(parsed), reexports: reexportsIn(parsed) };
    scopes.set(parsed, scope);
    return scope;
  }

  const target = (parsed, from) => files[files[parsed.fileName].targets[from]]?.parsed;

  function exportedBy(parsed, name, seen = new Set()) {
    const asked = parsed && `${parsed.fileName}\n${name}`;
    if (parsed === undefined || seen.has(asked)) return undefined;
    seen.add(asked);
    const { own, exported, reexports } = scopeOf(parsed),
      here = own.get(exported.get(name) ?? name);
    if (here !== undefined) return here;
    for (const { from, names } of reexports) {
      const theirs = names === null ? name : names[name];
      const found =
        theirs === undefined ? undefined : exportedBy(target(parsed, from), theirs, seen);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function find(name, parsed) {
    if (ts.isImportTypeNode(name))
      return (
        name.qualifier?.text &&
        exportedBy(target(parsed, name.argument.literal?.text), name.qualifier.text)
      );
    const { own, imported } = scopeOf(parsed);
    if (ts.isIdentifier(name)) {
      const source = imported.get(name.text);
      return own.get(name.text) ?? (source && exportedBy(target(parsed, source.from), source.name));
    }
    // `types.Order` of `import * as types`, `State.Open` of an enum, and both.
    const [of, member] = [name.left ?? name.expression, (name.right ?? name.name)?.text];
    if (of === undefined) return undefined;
    const source = ts.isIdentifier(of) ? imported.get(of.text) : undefined;
    if (source?.name === "*") return exportedBy(target(parsed, source.from), member);
    const whole = find(of, parsed);
    return whole && ts.isEnumDeclaration(whole)
      ? whole.members.find((each) => each.name.text === member)
      : undefined;
  }

  const first = (name) => (ts.isIdentifier(name) ? name : first(name.left ?? name.expression));
  const isImported = (name, parsed) =>
    ts.isImportTypeNode(name) || scopeOf(parsed).imported.has(first(name).text);
  return { find, isImported };
};
