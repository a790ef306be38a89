/** The types of the client library in one declaration file, so that every way of resolution finds them,
 * Deno's too.
 */

import { join } from "node:path";
import ts from "typescript";

const LIB = ["es2023", "dom", "dom.iterable", "dom.asynciterable"].map((name) => `lib.${name}.d.ts`);

/**
 * The declarations of `mod.ts` in `folder` and of all files that it imports. No two files declare the same
 * name, so they can stand beside each other; what `mod.ts` exports is exported. Throws where TypeScript finds
 * a fault.
 */
export function declarationsOf(folder: string): string {
  const program = ts.createProgram([join(folder, "mod.ts")], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: LIB,
    types: [],
    strict: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    declaration: true,
    emitDeclarationOnly: true,
  });
  const files: ts.SourceFile[] = [];
  const { diagnostics } = program.emit(undefined, (path, text) => {
    files.push(ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true));
  });
  const faults = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (faults.length > 0) {
    throw new Error(ts.formatDiagnostics(faults, {
      getCurrentDirectory: () => folder,
      getCanonicalFileName: (name) => name,
      getNewLine: () => "\n",
    }));
  }
  const declarations = files.flatMap((file) => file.statements.filter(isDeclaration).map(withoutExport));
  return `${declarations.join("\n")}\nexport { ${exportsOf(program, join(folder, "mod.ts")).join(", ")} };\n`;
}

function isDeclaration(statement: ts.Statement): boolean {
  return !ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement);
}

/**
 * A statement without `export`, with its comment. Names of other files stand beside it now, so they need no
 * `api.` in front.
 */
function withoutExport(statement: ts.Statement): string {
  const { text } = statement.getSourceFile();
  const comments = text.slice(statement.getFullStart(), statement.getStart()).match(/\/\*\*.*?\*\//gs) ?? [];
  if (statement.getFullStart() === 0) comments.shift(); // That of the file.
  const declaration = statement.getText().replace(/^export /, "").replace(/\bapi\.(?=[A-Z])/g, "");
  if (/\bimport\(/.test(declaration)) throw new Error(`a declaration imports a type: ${declaration}`);
  return [...comments.slice(-1), declaration].join("\n");
}

function exportsOf(program: ts.Program, path: string): string[] {
  const checker = program.getTypeChecker();
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(path)!)!;
  return checker.getExportsOfModule(symbol).map((exported) => {
    const original = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    return original.flags & ts.SymbolFlags.Value ? exported.name : `type ${exported.name}`;
  }).toSorted();
}
