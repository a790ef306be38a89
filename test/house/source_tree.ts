/** The source tree as data: every file of src/, its code without comments, and what it imports. */

import { dirname, join, normalize, relative } from "node:path";

export interface SourceFile {
  /** Path inside src/, such as `base/log.ts`. */
  readonly path: string;
  /**
   * First folder of the path; "composition" for main.ts and the files of src/process/ and src/service/, which
   * open everything.
   */
  readonly room: string;
  readonly text: string;
  /** The text with comments blanked out, so that positions and line numbers stay. */
  readonly code: string;
  /** Import specifiers; those of our own files resolved to paths inside src/. */
  readonly imports: readonly Import[];
}

export interface Import {
  readonly target: string;
  /** A file of src/ and no package. */
  readonly isOurs: boolean;
  /** Started by its URL as a Worker instead of imported. */
  readonly isStarted: boolean;
  /** Place in the text. */
  readonly index: number;
}

const SRC = new URL("../../src/", import.meta.url).pathname;

/** Every TypeScript file under src/, in path order. */
export function sourceFiles(root: string = SRC): SourceFile[] {
  return [...tsFiles(root)].sort().map((path) =>
    sourceFile(relative(root, path), Deno.readTextFileSync(path))
  );
}

/** One file as data; `path` is relative to src/. */
export function sourceFile(path: string, text: string): SourceFile {
  const code = withoutComments(text);
  const imports = [...code.matchAll(SPECIFIER)].map((match): Import => {
    const specifier = (match[1] ?? match[2] ?? match[3])!;
    const isOurs = specifier.startsWith(".");
    const target = isOurs ? normalize(join(dirname(path), specifier)) : specifier;
    return { target, isOurs, isStarted: match[1] === undefined, index: match.index };
  });
  return { path, room: roomOf(path), text, code, imports };
}

/** The room of a path inside src/. */
export function roomOf(path: string): string {
  return /^(service|process)\/|^[^/]*$/.test(path) ? "composition" : path.split("/")[0]!;
}

/** Every folder that holds files, with the number of its files and of the folders directly below it. */
export function foldersOf(
  files: readonly SourceFile[],
): { folder: string; files: number; folders: number }[] {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    const folder = dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  const names = [...counts.keys()];
  return names.map((folder) => ({
    folder,
    files: counts.get(folder)!,
    folders: names.filter((name) => name !== folder && dirname(name) === folder).length,
  }));
}

/** The line, counted from 1, on which the character at `index` stands. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/**
 * `from "x"`, `import "x"`, `import("x")`, and the `new URL("./x.ts", import.meta.url)` that starts a Worker.
 */
const SPECIFIER =
  /(?:(?<!")\bfrom\s*|\bimport\s*\(?\s*)"([^"]+)"|\bnew URL\(\s*"(\.[^"]+\.ts)"|\bresolve\(\s*"(\.[^"]+\.ts)"/g;

function withoutComments(text: string): string {
  const blank = (comment: string) => comment.replace(/[^\n]/g, " ");
  return text
    .replace(/^\s*\/\*[\s\S]*?\*\//gm, blank)
    .replace(/(^|[\s;,{])\/\/ .*$/gm, blank);
}

/** Every TypeScript file below a folder. */
export function* tsFiles(folder: string): Generator<string> {
  for (const entry of Deno.readDirSync(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* tsFiles(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}
