/** What is known of uploads besides their bytes: the name that each one had, and the hash by which equal ones
 * are one file.
 */

import { ownerPrefixIn } from "../../model/identifiers.ts";
import { join } from "node:path";
import { bareName } from "../../model/files/file_name.ts";

export interface UploadRecord {
  /** The stored name of the upload. */
  readonly name: string;
  readonly label: string;
  readonly sha256: string;
}

/**
 * The file of the records, in the upload root: a JSON object a line; hidden and without the prefix of an
 * owner, so that it is no upload.
 */
const FILE = ".names";

/**
 * The records of one upload root. Uploads of earlier versions have no record: their label is their stored
 * name, and nothing is equal to them.
 */
export class UploadNames {
  readonly #path: string;
  readonly #byName = new Map<string, UploadRecord>();
  /** The stored names by owner and hash. */
  readonly #byBytes = new Map<string, string>();

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Reads the records of the root. Those of uploads that are gone are left out, and so is a line that was cut
   * by a crash.
   */
  static open(root: string): UploadNames {
    const names = new UploadNames(join(root, FILE));
    const present = new Set(filesOf(root));
    if (!present.has(FILE)) return names;
    const lines = Deno.readTextFileSync(names.#path).split("\n").filter((line) => line !== "");
    for (const line of lines) {
      const record = recordOf(line);
      if (record !== null && present.has(record.name)) names.#keep(record);
    }
    if (names.#byName.size < lines.length) names.#rewrite();
    return names;
  }

  /** The name that an upload had; for one without a record its stored name without the owner. */
  labelOf(name: string): string {
    return this.#byName.get(name)?.label ?? bareName(name);
  }

  /** The stored name of an upload of the same owner with these bytes; undefined where none is known. */
  withBytes(name: string, sha256: string): string | undefined {
    return this.#byBytes.get(bytesKey({ name, sha256 }));
  }

  add(record: UploadRecord): void {
    if (this.#byName.get(record.name)?.sha256 === record.sha256) return;
    // It begins a line of its own, whatever a full disk has left of the one before.
    const line = new TextEncoder().encode(`\n${JSON.stringify(record)}\n`);
    Deno.writeFileSync(this.#path, line, { append: true, mode: 0o600 });
    this.#keep(record);
  }

  remove(name: string): void {
    const record = this.#byName.get(name);
    if (record === undefined) return;
    this.#byName.delete(name);
    if (this.withBytes(name, record.sha256) === name) this.#byBytes.delete(bytesKey(record));
  }

  #keep(record: UploadRecord): void {
    this.#byName.set(record.name, record);
    this.#byBytes.set(bytesKey(record), record.name);
  }

  #rewrite(): void {
    const text = [...this.#byName.values()].map((record) => `${JSON.stringify(record)}\n`).join("");
    const next = `${this.#path}.new`;
    Deno.writeTextFileSync(next, text, { mode: 0o600 });
    Deno.renameSync(next, this.#path);
  }
}

function bytesKey({ name, sha256 }: Pick<UploadRecord, "name" | "sha256">): string {
  return `${ownerPrefixIn(name) ?? ""}${sha256}`;
}

function recordOf(line: string): UploadRecord | null {
  try {
    const { name, label, sha256 } = JSON.parse(line);
    const isRecord = [name, label, sha256].every((value) => typeof value === "string");
    return isRecord ? { name, label, sha256 } : null;
  } catch {
    return null;
  }
}

/** Names of the files of a folder; none where it is missing. */
function filesOf(root: string): string[] {
  try {
    return [...Deno.readDirSync(root)].map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
