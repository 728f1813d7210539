// Evaluated after the TypeScript compiler, whose namespace is `ts`: makes the buffer that an isolate starts with, and
// `__transpile(file, source)`, which answers with JSON {code, mappings, errors: [{line, column, message}], requires: [{name,
// line, column}]}. Lines and columns count from 0; those of `requires` are places in the emitted code.
globalThis.__transpile = (file, source) => {
  const result = ts.transpileModule(source, {
    fileName: file,
    reportDiagnostics: true,
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
      allowJs: true,
      sourceMap: true,
    },
  });
  const errors = result.diagnostics.filter((entry) => entry.category === ts.DiagnosticCategory.Error).map((entry) => {
    const at = entry.file ? entry.file.getLineAndCharacterOfPosition(entry.start) : { line: 0, character: 0 };
    return { line: at.line, column: at.character, message: ts.flattenDiagnosticMessageText(entry.messageText, "; ") };
  });
  const code = result.outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "");
  const starts = ts.computeLineStarts(code);
  const requires = ts.preProcessFile(code, true, true).importedFiles.map((entry) => {
    const at = ts.computeLineAndCharacterOfPosition(starts, entry.pos);
    return { name: entry.fileName, line: at.line, column: at.character };
  });
  return JSON.stringify({ code, mappings: JSON.parse(result.sourceMapText).mappings, errors, requires });
};
Object.defineProperty(new SharedArrayBuffer(16), "native", { set() {} });
