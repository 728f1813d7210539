// Evaluated between declared.js and transpile.js. Makes `functionsIn(parsed, declarations)`, which
// returns {functions, otherwise}. `functions` are those at the top level of a source file, [{name,
// exported, description, parameters, order, rest, takes, context, line, column, unread}].
// `declarations` find the types that it names (declared.js). `parameters` is the JSON Schema of the
// arguments by name; `order` names them in the order of the function's parameters (null: it takes
// them as one object), and `rest` is whether the last one is a rest parameter; `takes` counts its
// parameters; `context` is the index of the one that is `ctx` (-1: none). `unread` are [{type,
// file, line, column, imported}] of types without a JSON Schema; `file` is omitted where it is this
// one; `imported`: another file may declare it. `computed` is the place of a part of its entry in
// `schemas` that is not a literal (null: none): its types count then. `is_default`: the file
// exports it as its default. Lines and columns count from 0.
// `otherwise` are [{noun, name, line, column}]: what the file exports that is called in another way
// (noun `generator`; `class`: one with static methods), and the names that `schemas` describes
// (`schema`).
// Nothing of the file is executed.
// Of the schema of one function: types that name each other may be written out very often.
const MOST_TYPES = 5000;
const functionsIn = (() => {
  const textOf = (comment) => (ts.getTextOfJSDocComment(comment) ?? "").trim();
  const lastDoc = (node) => node.jsDoc?.[node.jsDoc.length - 1];
  // The comment of a member; one on the line of the brace before it is not in the tree.
  const commentOf = (member) => {
    if (member.jsDoc) return textOf(lastDoc(member).comment);
    const text = member.getSourceFile().text;
    const range = (ts.getTrailingCommentRanges(text, member.pos) ?? []).find((each) =>
      text.startsWith("/**", each.pos),
    );
    return range ? text.slice(range.pos + 3, range.end - 2).trim() : "";
  };
  const described = (schema, text) => (text ? { ...schema, description: text } : schema);
  const bare = (node) =>
    node &&
    (ts.isAsExpression(node) ||
      ts.isSatisfiesExpression(node) ||
      ts.isParenthesizedExpression(node))
      ? bare(node.expression)
      : node;
  const nameOf = (name) =>
    ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isNumericLiteral(name) ? name.text : "";

  const PLAIN = {
    __proto__: null,
    Array: "array",
    Boolean: "boolean",
    Number: "number",
    Object: "object",
    String: "string",
  };

  // The value of a literal; undefined for anything that would have to be executed, which is added
  // to `computed`.
  function valueOf(written, computed = []) {
    const node = bare(written);
    if (ts.isStringLiteralLike(node)) return node.text;
    if (ts.isNumericLiteral(node)) return Number(node.text);
    if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.MinusToken)
      return -valueOf(node.operand, computed);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.PlusToken) {
      const sides = [valueOf(node.left, computed), valueOf(node.right, computed)];
      return sides.includes(undefined) ? undefined : sides[0] + sides[1];
    }
    if (node.kind === SyntaxKind.TrueKeyword) return true;
    if (node.kind === SyntaxKind.FalseKeyword) return false;
    if (node.kind === SyntaxKind.NullKeyword) return null;
    if (ts.isArrayLiteralExpression(node))
      return node.elements.map((each) => valueOf(each, computed));
    if (!ts.isObjectLiteralExpression(node)) {
      computed.push(node);
      return undefined;
    }
    return Object.fromEntries(
      node.properties.map((each) => {
        const name = ts.isPropertyAssignment(each) ? nameOf(each.name) : "";
        if (name === "") computed.push(each);
        return [name, name === "" ? undefined : valueOf(each.initializer, computed)];
      }),
    );
  }

  const CALCULATED = {
    [SyntaxKind.BarToken]: (a, b) => a | b,
    [SyntaxKind.AmpersandToken]: (a, b) => a & b,
    [SyntaxKind.CaretToken]: (a, b) => a ^ b,
    [SyntaxKind.LessThanLessThanToken]: (a, b) => a << b,
    [SyntaxKind.GreaterThanGreaterThanToken]: (a, b) => a >> b,
    [SyntaxKind.PlusToken]: (a, b) => a + b,
    [SyntaxKind.MinusToken]: (a, b) => a - b,
    [SyntaxKind.AsteriskToken]: (a, b) => a * b,
  };

  // The value of a member of an enum, from those before it (`known`) in the enum `own`; undefined
  // for one that is known only when it runs.
  function constantOf(written, known, own) {
    const node = bare(written);
    if (ts.isIdentifier(node)) return known[node.text];
    if (ts.isPropertyAccessExpression(node))
      return node.expression.text === own ? known[node.name.text] : undefined;
    if (ts.isPrefixUnaryExpression(node)) {
      const value = constantOf(node.operand, known, own);
      if (typeof value !== "number") return undefined;
      return {
        [SyntaxKind.MinusToken]: -value,
        [SyntaxKind.PlusToken]: value,
        [SyntaxKind.TildeToken]: ~value,
      }[node.operator];
    }
    if (!ts.isBinaryExpression(node))
      return ts.isStringLiteralLike(node) || ts.isNumericLiteral(node) ? valueOf(node) : undefined;
    const sides = [constantOf(node.left, known, own), constantOf(node.right, known, own)];
    return sides.every((each) => typeof each === "number")
      ? CALCULATED[node.operatorToken.kind]?.(...sides)
      : undefined;
  }

  // The values of an enum; undefined for members that are known only when it runs.
  function membersOf(declaration) {
    const known = { __proto__: null },
      own = declaration.name.text;
    let before = -1;
    return declaration.members.map((member) => {
      const following = typeof before === "number" ? before + 1 : undefined;
      before = member.initializer ? constantOf(member.initializer, known, own) : following;
      return (known[nameOf(member.name)] = before);
    });
  }

  function reader({ find, isImported }, unread, parameters) {
    let left = MOST_TYPES;
    let bound = { __proto__: null }; // the schemas of the type parameters in scope, by name
    // Bind type parameters to the given types, or else to their defaults or constraints, which may
    // name those before them; one without these accepts every value. Return the bindings before.
    const bind = (parameters, given, seen) => {
      const before = bound,
        values = given.map((each) => schemaOf(each, seen));
      bound = { __proto__: null };
      for (const [index, each] of (parameters ?? []).entries())
        bound[each.name.text] = values[index] ?? schemaOf(each.default ?? each.constraint, seen);
      return before;
    };
    const isUndefined = (type) =>
      type.kind === SyntaxKind.UndefinedKeyword || type.kind === SyntaxKind.VoidKeyword;
    const objectOf = (members, seen) => {
      const properties = { __proto__: null },
        required = [];
      let others;
      for (const member of members) {
        if (ts.isIndexSignatureDeclaration(member)) others = schemaOf(member.type, seen);
        if (!ts.isPropertySignature(member)) continue;
        const name = nameOf(member.name);
        properties[name] = described(schemaOf(member.type, seen), commentOf(member));
        const optional =
          member.questionToken ||
          (member.type && ts.isUnionTypeNode(member.type) && member.type.types.some(isUndefined));
        if (!optional) required.push(name);
      }
      return {
        type: "object",
        properties,
        ...(required.length ? { required } : {}),
        additionalProperties: others ?? false,
      };
    };
    const enumOf = (values) => {
      const types = [...new Set(values.map((value) => (value === null ? "null" : typeof value)))];
      return { ...(types.length === 1 ? { type: types[0] } : {}), enum: values };
    };
    // With a value that is not known, any of their types.
    const enumeration = (values) => {
      if (values.every((value) => value !== undefined)) return enumOf(values);
      return {
        type: values.some((value) => typeof value === "string") ? ["number", "string"] : "number",
      };
    };
    // Of objects and values of any kind, one object; it is closed if all of them are.
    const joined = (parts) => {
      if (parts.some((part) => part.type !== "object" && Object.keys(part).length > 0))
        return { allOf: parts };
      const open = parts.find((part) => part.additionalProperties !== false);
      return {
        type: "object",
        properties: Object.assign({ __proto__: null }, ...parts.map((part) => part.properties)),
        required: [...new Set(parts.flatMap((part) => part.required ?? []))],
        additionalProperties: open ? (open.additionalProperties ?? true) : false,
      };
    };
    const interfaceOf = (found, seen) => {
      const bases = (found.heritageClauses ?? [])
        .flatMap((each) => each.types)
        .map((each) => schemaOf(each, seen));
      const own = objectOf(found.members, seen);
      return bases.length ? joined([...bases, own]) : own;
    };
    // The properties of an object that are named, or all but them.
    const chosen = (whole, names, isChosen) => {
      if (!whole.properties || !names) return undefined;
      const kept = Object.keys(whole.properties).filter(
        (name) => names.includes(name) === isChosen,
      );
      const properties = {
        __proto__: null,
        ...Object.fromEntries(kept.map((name) => [name, whole.properties[name]])),
      };
      return {
        ...whole,
        properties,
        required: (whole.required ?? []).filter((name) => kept.includes(name)),
      };
    };
    const unionOf = (types, seen) => {
      const parts = types.filter((type) => !isUndefined(type)).map((type) => schemaOf(type, seen));
      if (parts.length === 1) return parts[0];
      if (parts.every((part) => part.enum)) return enumOf(parts.flatMap((part) => part.enum));
      return { anyOf: parts };
    };
    const UTILITIES = {
      __proto__: null,
      Array: (of) => ({ type: "array", items: of }),
      ReadonlyArray: (of) => ({ type: "array", items: of }),
      Readonly: (of) => of,
      Partial: (of) => ({ ...of, required: [] }),
      Required: (of) => of.properties && { ...of, required: Object.keys(of.properties) },
      Record: (_, of) => of && { type: "object", additionalProperties: of },
      Pick: (of, names) => chosen(of, names?.enum, true),
      Omit: (of, names) => chosen(of, names?.enum, false),
    };
    const referenceOf = (type, seen) => {
      const written = type.typeName ?? type.expression ?? type,
        name = written.text,
        given = type.typeArguments ?? [];
      const utility =
        given.length > 0 && UTILITIES[name]?.(...given.map((each) => schemaOf(each, seen)));
      if (utility) return utility;
      if (name in bound && given.length === 0) return bound[name];
      if (name in PLAIN && given.length === 0) return { type: PLAIN[name] };
      const parsed = type.getSourceFile(),
        found = find(written, parsed);
      if (found === undefined || seen.includes(found)) {
        unread(type, found === undefined && isImported(written, parsed));
        return {};
      }
      if (ts.isEnumDeclaration(found)) return enumeration(membersOf(found));
      if (ts.isEnumMember(found))
        return enumeration([membersOf(found.parent)[found.parent.members.indexOf(found)]]);
      const before = bind(found.typeParameters, given, seen),
        inside = [...seen, found];
      const made = ts.isInterfaceDeclaration(found)
        ? interfaceOf(found, inside)
        : schemaOf(found.type, inside);
      bound = before;
      return made;
    };
    function schemaOf(type, seen = []) {
      if (type === undefined) return {};
      if (left-- <= 0) {
        if (left === -1) unread(type, false);
        return {};
      }
      switch (type.kind) {
        case SyntaxKind.StringKeyword:
          return { type: "string" };
        case SyntaxKind.NumberKeyword:
          return { type: "number" };
        case SyntaxKind.BooleanKeyword:
          return { type: "boolean" };
        case SyntaxKind.ObjectKeyword:
          return { type: "object" };
        case SyntaxKind.AnyKeyword:
        case SyntaxKind.UnknownKeyword:
        case SyntaxKind.JSDocAllType:
          return {};
        case SyntaxKind.JSDocOptionalType:
        case SyntaxKind.JSDocNonNullableType:
          return schemaOf(type.type, seen);
        case SyntaxKind.JSDocNullableType:
          return { anyOf: [schemaOf(type.type, seen), { type: "null" }] };
        case SyntaxKind.JSDocTypeExpression:
          return schemaOf(type.type, seen);
        case SyntaxKind.JSDocTypeLiteral:
          return { type: "object" };
        case SyntaxKind.ParenthesizedType:
          return schemaOf(type.type, seen);
        case SyntaxKind.TypeOperator: {
          const whole = schemaOf(type.type, seen);
          if (type.operator !== SyntaxKind.KeyOfKeyword) return whole;
          return whole.properties ? enumOf(Object.keys(whole.properties)) : {};
        }
        case SyntaxKind.ArrayType:
          return { type: "array", items: schemaOf(type.elementType, seen) };
        case SyntaxKind.JSDocVariadicType:
          return { type: "array", items: schemaOf(type.type, seen) };
        case SyntaxKind.TupleType:
          return { type: "array" };
        case SyntaxKind.TypeLiteral:
          return objectOf(type.members, seen);
        case SyntaxKind.UnionType:
          return unionOf(type.types, seen);
        case SyntaxKind.IntersectionType:
          return joined(type.types.map((each) => schemaOf(each, seen)));
        case SyntaxKind.LiteralType: {
          const value = valueOf(type.literal);
          if (value === undefined) {
            unread(type, false);
            return {};
          }
          return value === null ? { type: "null" } : enumOf([value]);
        }
        case SyntaxKind.TypeReference:
        case SyntaxKind.ExpressionWithTypeArguments:
        case SyntaxKind.ImportType:
          return referenceOf(type, seen);
        default:
          unread(type, false);
          return {};
      }
    }
    bind(parameters, [], []);
    return schemaOf;
  }

  // The type of a parameter: as written, else that of its comment, as in JavaScript.
  const typeOf = (parameter) => parameter.type ?? ts.getJSDocType(parameter);
  const isContext = (parameter) =>
    ["ctx", "context"].includes(parameter.name.text) ||
    /(^|\.)Context$/.test(parameter.type?.typeName?.getText() ?? "");
  const isOpen = (type) =>
    !type ||
    [SyntaxKind.AnyKeyword, SyntaxKind.UnknownKeyword, SyntaxKind.JSDocAllType].includes(type.kind);
  const WHOLE = ["args", "arguments", "params", "input", "payload"];

  const at = (node, parsed) => {
    const place = parsed.getLineAndCharacterOfPosition(node.getStart(parsed));
    return { line: place.line, column: place.character };
  };

  function signature(made, name, doc, { given, computed }, declarations, parsed) {
    const missing = [];
    const unread = (node, imported) => {
      const file = node.getSourceFile();
      missing.push({
        type: node.getText(),
        imported,
        ...(file === parsed ? {} : { file: file.fileName }),
        ...at(node, file),
      });
    };
    const schemaOf = reader(declarations, unread, made.typeParameters);
    const context = made.parameters.findIndex(isContext);
    const own = made.parameters.filter((_, index) => index !== context);
    const tags = (doc?.tags ?? []).filter(ts.isJSDocParameterTag);
    const about = new Map(
      tags.map((tag) => [tag.name.getText(), textOf(tag.comment).replace(/^-\s*/, "")]),
    );
    const bracketed = new Set(
      tags.filter((tag) => tag.isBracketed).map((tag) => tag.name.getText()),
    );
    const properties = { __proto__: null },
      required = [];
    // Destructured parameters have no name of their own.
    const names = own.map((parameter, index) => nameOf(parameter.name) || `argument${index + 1}`);
    for (const [index, parameter] of own.entries()) {
      const key = names[index];
      const written = typeOf(parameter);
      const assumed =
        parameter.initializer && !written ? typeof valueOf(parameter.initializer) : "";
      const read = ["string", "number", "boolean"].includes(assumed)
        ? { type: assumed }
        : schemaOf(written);
      const type = parameter.dotDotDotToken && read.type !== "array" ? { type: "array" } : read;
      properties[key] = described(type, about.get(key));
      const optional =
        parameter.questionToken ||
        parameter.initializer ||
        parameter.dotDotDotToken ||
        bracketed.has(key);
      if (!optional && written?.kind !== SyntaxKind.JSDocOptionalType) required.push(key);
    }
    const rest = own.length > 0 && own[own.length - 1].dotDotDotToken !== undefined;
    const only = own.length === 1 && !rest ? own[0] : undefined;
    const shape = only && (Object.values(properties)[0] ?? {});
    const whole =
      only &&
      (!ts.isIdentifier(only.name) ||
        shape.type === "object" ||
        (isOpen(typeOf(only)) && WHOLE.includes(only.name.text)));
    const order = whole ? null : names;
    const { description, ...alone } = shape ?? {};
    const typed = whole
      ? { type: "object", properties: {}, ...alone }
      : { type: "object", properties, required, additionalProperties: false };
    const byName = given && names.every((key) => Object.hasOwn(Object(given.properties), key));
    return {
      parameters: given ?? typed,
      order: given ? (byName && !whole ? order : null) : order,
      rest,
      takes: made.parameters.length,
      context,
      unread: given ? [] : missing,
      computed,
      description: textOf(doc?.comment),
      name,
    };
  }

  // What a file's `schemas` has for each of its functions: `given`, the schema, or the place where
  // it is `computed`. `written` is the value of `schemas`, or the name that another file's has.
  function schemasOf(written, parsed) {
    const none = { given: undefined, computed: null };
    if (!written) return () => none;
    const computedAt = (node) => ({ given: undefined, computed: at(node, parsed) });
    if (!ts.isObjectLiteralExpression(written)) return () => computedAt(written);
    return (name) => {
      const entry = written.properties.find((each) => each.name && nameOf(each.name) === name);
      if (entry === undefined) return none;
      if (!ts.isPropertyAssignment(entry)) return computedAt(entry);
      const computed = [],
        given = valueOf(entry.initializer, computed);
      return computed.length > 0 ? computedAt(computed[0]) : { given, computed: null };
    };
  }

  const isFunction = (node) =>
    node &&
    (ts.isArrowFunction(node) || ts.isFunctionExpression(node) || ts.isMethodDeclaration(node)) &&
    !node.asteriskToken;

  const isStaticMethod = (node) =>
    ts.isMethodDeclaration(node) && ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Static;

  // What an exported value is that is called in another way than a function; "" for others.
  const nounOf = (node) =>
    node?.asteriskToken
      ? "generator"
      : node && ts.isClassLike(node) && node.members.some(isStaticMethod)
        ? "class"
        : "";

  // What a statement exports as values: [{name, value, documented}], of `export default {…}`,
  // `module.exports = {…}` and `exports.name = …`.
  function valuesExportedBy(statement) {
    const set = ts.isExpressionStatement(statement) ? statement.expression : undefined;
    const isSet =
      set && ts.isBinaryExpression(set) && set.operatorToken.kind === SyntaxKind.EqualsToken;
    const target = isSet ? set.left.getText() : "";
    if (/^(module\.)?exports\.\w+$/.test(target))
      return [{ name: set.left.name, value: bare(set.right), documented: statement }];
    const whole = bare(
      target === "module.exports"
        ? set.right
        : ts.isExportAssignment(statement) && statement.expression,
    );
    if (!whole || !ts.isObjectLiteralExpression(whole)) return [];
    return whole.properties
      .filter((each) => each.name && ts.isIdentifier(each.name))
      .map((each) => ({
        name: each.name,
        value: ts.isMethodDeclaration(each) ? each : bare(each.initializer ?? each.name),
        documented: each,
      }));
  }

  return (parsed, declarations) => {
    const found = [],
      others = [];
    let named = new Map(),
      schemas,
      byDefault;
    const isDefault = (node) =>
      node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.DefaultKeyword) ?? false;
    const isExported = (node) =>
      node.modifiers?.some((modifier) => modifier.kind === SyntaxKind.ExportKeyword) ?? false;
    for (const statement of parsed.statements) {
      if (ts.isExportAssignment(statement)) byDefault = statement.expression.text;
      if (ts.isExportDeclaration(statement))
        schemas ??= statement.exportClause?.elements?.find((each) => each.name.text === "schemas");
      if (
        ts.isExportDeclaration(statement) &&
        !statement.moduleSpecifier &&
        statement.exportClause?.elements
      ) {
        for (const each of statement.exportClause.elements) {
          const own = (each.propertyName ?? each.name).text;
          named.set(own, [...(named.get(own) ?? []), each.name.text]);
        }
      }
      if (
        ts.isFunctionDeclaration(statement) &&
        statement.body &&
        statement.name &&
        !statement.asteriskToken
      ) {
        found.push([statement, statement.name, statement, isExported(statement)]);
      }
      if (statement.name && nounOf(statement))
        others.push([nounOf(statement), statement.name, isExported(statement)]);
      for (const { name, value, documented } of valuesExportedBy(statement)) {
        if (isFunction(value)) found.push([value, name, documented, true]);
        else if (nounOf(value)) others.push([nounOf(value), name, true]);
        else if (name.text === "schemas" && !ts.isIdentifier(value)) schemas = value;
        else if (ts.isIdentifier(value))
          named.set(value.text, [...(named.get(value.text) ?? []), name.text]);
      }
      if (!ts.isVariableStatement(statement)) continue;
      for (const each of statement.declarationList.declarations) {
        const value = bare(each.initializer);
        if (isFunction(value))
          found.push([value, each.name, statement, isExported(statement)]);
        else if (nounOf(value)) others.push([nounOf(value), each.name, isExported(statement)]);
        if (each.name.text === "schemas" && value) schemas = value;
      }
    }
    const schemaFor = schemasOf(schemas, parsed);
    const isNamed = (own) => own === byDefault || (named.get(own) ?? []).includes(own);
    const functions = found.flatMap(([made, name, documented, exported]) => {
      const own = name.text,
        read = signature(made, own, lastDoc(documented), schemaFor(own), declarations, parsed);
      const others = (named.get(own) ?? []).filter((other) => other !== own && other !== "default");
      const one = {
        ...read,
        exported: exported || isNamed(own),
        is_default:
          isDefault(documented) || (named.get(own) ?? []).includes("default") || own === byDefault,
        ...at(name, parsed),
      };
      return [one, ...others.map((other) => ({ ...one, name: other, exported: true }))];
    });
    const described =
      schemas && ts.isObjectLiteralExpression(schemas)
        ? schemas.properties.filter((each) => each.name && nameOf(each.name))
        : [];
    const otherwise = [
      ...others.filter(([, name, exported]) => exported || isNamed(name.text)),
      ...described.map((each) => ["schema", each.name]),
    ].map(([noun, name]) => ({ noun, name: nameOf(name), ...at(name, parsed) }));
    return { functions, otherwise };
  };
})();
