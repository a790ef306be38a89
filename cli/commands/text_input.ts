/** Texts and JSON out of files or stdin, for commands that take them. */

import { CliError } from "../failure.ts";

/** The file's text; `-` is stdin. */
export async function readText(path: string): Promise<string> {
  try {
    return path === "-" ? await new Response(Deno.stdin.readable).text() : await Deno.readTextFile(path);
  } catch (error) {
    throw new CliError("usage", `cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  }
}

// deno-lint-ignore no-explicit-any -- the server checks what it is
export async function readJson(path: string): Promise<any> {
  const text = await readText(path);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError("usage", `${path} is no JSON: ${(error as Error).message}`);
  }
}

/** A JSON array, or one value a line. */
export async function readJsonList(path: string): Promise<unknown[]> {
  const text = await readText(path);
  try {
    if (text.trimStart().startsWith("[")) return JSON.parse(text);
    return text.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  } catch (error) {
    throw new CliError(
      "usage",
      `${path} is neither a JSON array nor JSON lines: ${(error as Error).message}`,
    );
  }
}
