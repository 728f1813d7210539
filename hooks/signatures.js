// Evaluated between the TypeScript compiler and transpile.js. Makes `reexportsIn(parsed)`, what a source file exports of other
// files: [{from, names}], where `names` maps exported names to those in the other file (null: all of them), last; and
// `functionsIn(parsed)`: the functions at the top level of a source file, [{name, exported, description, parameters, order, takes, context, line, column, unread}]. `parameters` is the
// JSON Schema of the arguments by name; `order` names them in the order of the function's parameters (null: it takes them as
// one object); `takes` counts its parameters; `context` is the index of the one that is `ctx` (-1: none). `unread` are [{type,
// line, column}] of types without a JSON Schema. `is_default`: the file exports it as its default. Lines and columns count from 0. Nothing of the file is executed.
const { SyntaxKind } = ts;
const reexportsIn = (parsed) => {
  const imported = new Map(), found = [];
  const original = (each) => (each.propertyName ?? each.name).text;
  for (const statement of parsed.statements) {
    if (!ts.isImportDeclaration(statement) || !statement.importClause) continue;
    const { name, namedBindings } = statement.importClause, from = statement.moduleSpecifier.text;
    if (name) imported.set(name.text, { from, name: "default" });
    for (const each of namedBindings?.elements ?? []) imported.set(each.name.text, { from, name: original(each) });
  }
  for (const statement of parsed.statements) {
    if (!ts.isExportDeclaration(statement)) continue;
    const { moduleSpecifier, exportClause } = statement;
    if (moduleSpecifier && !exportClause) found.push({ from: moduleSpecifier.text, names: null });
    for (const each of exportClause?.elements ?? []) {
      const source = moduleSpecifier ? { from: moduleSpecifier.text, name: original(each) } : imported.get(original(each));
      if (source) found.push({ from: source.from, names: { [each.name.text]: source.name } });
    }
  }
  return found.sort((one, other) => (one.names === null) - (other.names === null));
};
const functionsIn = (() => {
  const textOf = (comment) => (ts.getTextOfJSDocComment(comment) ?? "").trim();
  const lastDoc = (node) => node.jsDoc?.[node.jsDoc.length - 1];
  // The comment of a member; one on the line of the brace before it is not in the tree.
  const commentOf = (member) => {
    if (member.jsDoc) return textOf(lastDoc(member).comment);
    const text = member.getSourceFile().text;
    const range = (ts.getTrailingCommentRanges(text, member.pos) ?? []).find((each) => text.startsWith("/**", each.pos));
    return range ? text.slice(range.pos + 3, range.end - 2).trim() : "";
  };
  const described = (schema, text) => (text ? { ...schema, description: text } : schema);
  const bare = (node) => (node && (ts.isAsExpression(node) || ts.isSatisfiesExpression(node) || ts.isParenthesizedExpression(node)) ? bare(node.expression) : node);
  const nameOf = (name) => (ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isNumericLiteral(name) ? name.text : "");

  const PLAIN = { __proto__: null, Array: "array", Boolean: "boolean", Number: "number", Object: "object", String: "string" };

  // The value of a literal; undefined for anything that would have to be executed.
  function valueOf(written) {
    const node = bare(written);
    if (ts.isStringLiteralLike(node)) return node.text;
    if (ts.isNumericLiteral(node)) return Number(node.text);
    if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.MinusToken) return -valueOf(node.operand);
    if (node.kind === SyntaxKind.TrueKeyword) return true;
    if (node.kind === SyntaxKind.FalseKeyword) return false;
    if (node.kind === SyntaxKind.NullKeyword) return null;
    if (ts.isArrayLiteralExpression(node)) return node.elements.map(valueOf);
    if (!ts.isObjectLiteralExpression(node)) return undefined;
    return Object.fromEntries(node.properties.filter(ts.isPropertyAssignment).map((each) => [nameOf(each.name), valueOf(each.initializer)]));
  }

  const CALCULATED = {
    [SyntaxKind.BarToken]: (a, b) => a | b, [SyntaxKind.AmpersandToken]: (a, b) => a & b, [SyntaxKind.CaretToken]: (a, b) => a ^ b,
    [SyntaxKind.LessThanLessThanToken]: (a, b) => a << b, [SyntaxKind.GreaterThanGreaterThanToken]: (a, b) => a >> b,
    [SyntaxKind.PlusToken]: (a, b) => a + b, [SyntaxKind.MinusToken]: (a, b) => a - b, [SyntaxKind.AsteriskToken]: (a, b) => a * b,
  };

  // The value of a member of an enum, from those before it (`known`) in the enum `own`; undefined for one that is known only when it runs.
  function constantOf(written, known, own) {
    const node = bare(written);
    if (ts.isIdentifier(node)) return known[node.text];
    if (ts.isPropertyAccessExpression(node)) return node.expression.text === own ? known[node.name.text] : undefined;
    if (ts.isPrefixUnaryExpression(node)) {
      const value = constantOf(node.operand, known, own);
      if (typeof value !== "number") return undefined;
      return { [SyntaxKind.MinusToken]: -value, [SyntaxKind.PlusToken]: value, [SyntaxKind.TildeToken]: ~value }[node.operator];
    }
    if (!ts.isBinaryExpression(node)) return ts.isStringLiteralLike(node) || ts.isNumericLiteral(node) ? valueOf(node) : undefined;
    const sides = [constantOf(node.left, known, own), constantOf(node.right, known, own)];
    return sides.every((each) => typeof each === "number") ? CALCULATED[node.operatorToken.kind]?.(...sides) : undefined;
  }

  // The values of an enum; undefined for members that are known only when it runs.
  function membersOf(declaration) {
    const known = { __proto__: null }, own = declaration.name.text;
    let before = -1;
    return declaration.members.map((member) => {
      const following = typeof before === "number" ? before + 1 : undefined;
      before = member.initializer ? constantOf(member.initializer, known, own) : following;
      return (known[nameOf(member.name)] = before);
    });
  }

  function reader(declared, unread) {
    const isUndefined = (type) => type.kind === SyntaxKind.UndefinedKeyword || type.kind === SyntaxKind.VoidKeyword;
    const objectOf = (members, seen) => {
      const properties = { __proto__: null }, required = [];
      let others;
      for (const member of members) {
        if (ts.isIndexSignatureDeclaration(member)) others = schemaOf(member.type, seen);
        if (!ts.isPropertySignature(member)) continue;
        const name = nameOf(member.name);
        properties[name] = described(schemaOf(member.type, seen), commentOf(member));
        const optional = member.questionToken || (member.type && ts.isUnionTypeNode(member.type) && member.type.types.some(isUndefined));
        if (!optional) required.push(name);
      }
      return { type: "object", properties, ...(required.length ? { required } : {}), additionalProperties: others ?? false };
    };
    const enumOf = (values) => {
      const types = [...new Set(values.map((value) => (value === null ? "null" : typeof value)))];
      return { ...(types.length === 1 ? { type: types[0] } : {}), enum: values };
    };
    // With a value that is not known, any of their types.
    const enumeration = (values) => {
      if (values.every((value) => value !== undefined)) return enumOf(values);
      return { type: values.some((value) => typeof value === "string") ? ["number", "string"] : "number" };
    };
    const joined = (parts) => {
      const shapes = parts.filter((part) => part.properties);
      return shapes.length < parts.length ? { allOf: parts } : {
        type: "object",
        properties: Object.assign({ __proto__: null }, ...shapes.map((part) => part.properties)),
        required: shapes.flatMap((part) => part.required ?? []),
        additionalProperties: false,
      };
    };
    const unionOf = (types, seen) => {
      const parts = types.filter((type) => !isUndefined(type)).map((type) => schemaOf(type, seen));
      if (parts.length === 1) return parts[0];
      if (parts.every((part) => part.enum)) return enumOf(parts.flatMap((part) => part.enum));
      return { anyOf: parts };
    };
    const referenceOf = (type, seen) => {
      const name = type.typeName.text, given = type.typeArguments ?? [];
      if (["Array", "ReadonlyArray"].includes(name) && given.length === 1) return { type: "array", items: schemaOf(given[0], seen) };
      if (name === "Record" && given.length === 2) return { type: "object", additionalProperties: schemaOf(given[1], seen) };
      if (name === "Readonly" && given.length === 1) return schemaOf(given[0], seen);
      if (name === "Partial" && given.length === 1) return { ...schemaOf(given[0], seen), required: [] };
      if (name in PLAIN && given.length === 0) return { type: PLAIN[name] };
      const found = declared[name];
      if (found === undefined || seen.includes(name)) {
        unread(type, name ?? type.getText());
        return {};
      }
      if (ts.isInterfaceDeclaration(found)) return objectOf(found.members, [...seen, name]);
      if (ts.isEnumDeclaration(found)) return enumeration(membersOf(found));
      return schemaOf(found.type, [...seen, name]);
    };
    function schemaOf(type, seen = []) {
      if (type === undefined) return {};
      switch (type.kind) {
        case SyntaxKind.StringKeyword: return { type: "string" };
        case SyntaxKind.NumberKeyword: return { type: "number" };
        case SyntaxKind.BooleanKeyword: return { type: "boolean" };
        case SyntaxKind.ObjectKeyword: return { type: "object" };
        case SyntaxKind.AnyKeyword: case SyntaxKind.UnknownKeyword: case SyntaxKind.JSDocAllType: return {};
        case SyntaxKind.JSDocOptionalType: case SyntaxKind.JSDocNonNullableType: return schemaOf(type.type, seen);
        case SyntaxKind.JSDocNullableType: return { anyOf: [schemaOf(type.type, seen), { type: "null" }] };
        case SyntaxKind.JSDocTypeExpression: return schemaOf(type.type, seen);
        case SyntaxKind.JSDocTypeLiteral: return { type: "object" };
        case SyntaxKind.ParenthesizedType: return schemaOf(type.type, seen);
        case SyntaxKind.TypeOperator: return schemaOf(type.type, seen);
        case SyntaxKind.ArrayType: return { type: "array", items: schemaOf(type.elementType, seen) };
        case SyntaxKind.TupleType: return { type: "array" };
        case SyntaxKind.TypeLiteral: return objectOf(type.members, seen);
        case SyntaxKind.UnionType: return unionOf(type.types, seen);
        case SyntaxKind.IntersectionType: return joined(type.types.map((each) => schemaOf(each, seen)));
        case SyntaxKind.LiteralType: {
          const value = valueOf(type.literal);
          if (value === undefined) {
            unread(type, type.getText());
            return {};
          }
          return value === null ? { type: "null" } : enumOf([value]);
        }
        case SyntaxKind.TypeReference: return referenceOf(type, seen);
        default:
          unread(type, type.getText());
          return {};
      }
    }
    return schemaOf;
  }

  // The type of a parameter: as written, else that of its comment, as in JavaScript.
  const typeOf = (parameter) => parameter.type ?? ts.getJSDocType(parameter);
  const isContext = (parameter) =>
    ["ctx", "context"].includes(parameter.name.text) || /(^|\.)Context$/.test(parameter.type?.typeName?.getText() ?? "");
  const isOpen = (type) => !type || [SyntaxKind.AnyKeyword, SyntaxKind.UnknownKeyword, SyntaxKind.JSDocAllType].includes(type.kind);
  const WHOLE = ["args", "arguments", "params", "input", "payload"];

  function signature(made, name, doc, given, declared, at) {
    const missing = [];
    const schemaOf = reader(declared, (node, type) => missing.push({ type, ...at(node) }));
    const context = made.parameters.findIndex(isContext);
    const own = made.parameters.filter((_, index) => index !== context);
    const tags = (doc?.tags ?? []).filter(ts.isJSDocParameterTag);
    const about = new Map(tags.map((tag) => [tag.name.getText(), textOf(tag.comment).replace(/^-\s*/, "")]));
    const bracketed = new Set(tags.filter((tag) => tag.isBracketed).map((tag) => tag.name.getText()));
    const properties = { __proto__: null }, required = [];
    for (const parameter of own) {
      const key = nameOf(parameter.name);
      const written = typeOf(parameter);
      const assumed = parameter.initializer && !written ? typeof valueOf(parameter.initializer) : "";
      const type = ["string", "number", "boolean"].includes(assumed) ? { type: assumed } : schemaOf(written);
      properties[key] = described(type, about.get(key));
      const optional = parameter.questionToken || parameter.initializer || parameter.dotDotDotToken || bracketed.has(key);
      if (!optional && written?.kind !== SyntaxKind.JSDocOptionalType) required.push(key);
    }
    const only = own.length === 1 ? own[0] : undefined;
    const shape = only && (Object.values(properties)[0] ?? {});
    const whole = only && (!ts.isIdentifier(only.name) || shape.type === "object" || (isOpen(typeOf(only)) && WHOLE.includes(only.name.text)));
    const order = whole ? null : own.map((parameter) => nameOf(parameter.name));
    const { description, ...alone } = shape ?? {};
    const typed = whole ? { type: "object", properties: {}, ...alone } : { type: "object", properties, required, additionalProperties: false };
    const byName = given && own.every((parameter) => Object.hasOwn(Object(given.properties), nameOf(parameter.name)));
    return {
      parameters: given ?? typed, order: given ? (byName && !whole ? order : null) : order,
      takes: made.parameters.length, context, unread: given ? [] : missing, description: textOf(doc?.comment), name,
    };
  }

  return (parsed) => {
    const at = (node) => {
      const place = parsed.getLineAndCharacterOfPosition(node.getStart(parsed));
      return { line: place.line, column: place.character };
    };
    const declared = { __proto__: null }, found = [];
    let named = new Map(), schemas = { __proto__: null }, byDefault;
    const isDefault = (node) => node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.DefaultKeyword) ?? false;
    const isExported = (node) => node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.ExportKeyword) ?? false;
    for (const statement of parsed.statements) {
      if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement) || ts.isEnumDeclaration(statement)) declared[statement.name.text] = statement;
      if (ts.isExportAssignment(statement)) byDefault = statement.expression.text;
      if (ts.isExportDeclaration(statement) && !statement.moduleSpecifier && statement.exportClause?.elements) {
        for (const each of statement.exportClause.elements) {
          const own = (each.propertyName ?? each.name).text;
          named.set(own, [...(named.get(own) ?? []), each.name.text]);
        }
      }
      if (ts.isFunctionDeclaration(statement) && statement.body && statement.name && !statement.asteriskToken) {
        found.push([statement, statement.name, statement, isExported(statement)]);
      }
      if (!ts.isVariableStatement(statement)) continue;
      for (const each of statement.declarationList.declarations) {
        const value = bare(each.initializer);
        if (value && (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) && !value.asteriskToken) found.push([value, each.name, statement, isExported(statement)]);
        if (each.name.text === "schemas" && value && ts.isObjectLiteralExpression(value)) schemas = { __proto__: null, ...valueOf(value) };
      }
    }
    return found.flatMap(([made, name, documented, exported]) => {
      const own = name.text, read = signature(made, own, lastDoc(documented), schemas[own], declared, at);
      const others = (named.get(own) ?? []).filter((other) => other !== own && other !== "default");
      const one = { ...read, exported: exported || own === byDefault || (named.get(own) ?? []).includes(own),
        is_default: isDefault(documented) || (named.get(own) ?? []).includes("default") || own === byDefault, ...at(name) };
      return [one, ...others.map((other) => ({ ...one, name: other, exported: true }))];
    });
  };
})();
