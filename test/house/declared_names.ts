/** Finds names that two files of src/ declare: one name is to mean one thing everywhere. */

import type { SourceFile } from "./source_tree.ts";

/** Types, classes and interfaces whether they are exported or not, and exported functions and constants. */
const DECLARATION =
  /^(?:export (?:default )?)?(?:declare )?(?:(?:type|enum|interface|(?:abstract )?class) ([\w$]+)|(?<=export )(?:(?:async )?function\*?|const) ([\w$]+))/gm;

/** Names that are declared in several files, with the paths of these, in the order of the names. */
export function namesDeclaredTwice(files: readonly SourceFile[]): [name: string, paths: string[]][] {
  const declared = new Map<string, Set<string>>();
  for (const { path, code } of files) {
    for (const [, type, value] of code.matchAll(DECLARATION)) {
      const name = (type ?? value)!;
      declared.set(name, (declared.get(name) ?? new Set()).add(path));
    }
  }
  return [...declared].filter(([, paths]) => paths.size > 1)
    .map(([name, paths]): [string, string[]] => [name, [...paths]])
    .toSorted(([one], [other]) => one < other ? -1 : 1);
}
