/** The settings of the reference embedding sidecar: a table of variables, read all at once, every fault named. */

import { type Address, address, integer, type Parser } from "../../base/setting_parsers.ts";

export interface EmbeddingSettings {
  readonly bindAddr: Address;
  /** Requests that may wait for the one that is worked on. */
  readonly queue: number;
  /** Of one request, its wait included. */
  readonly timeoutMs: number;
  readonly ffmpegProgram: string;
}

/** Names are listed one by one, as the process may read no others. */
export const EMBEDDING_VARIABLES = [
  "EMBEDDING_SIDECAR_BIND_ADDR",
  "EMBEDDING_SIDECAR_QUEUE",
  "EMBEDDING_SIDECAR_TIMEOUT_MS",
  "EMBEDDING_SIDECAR_FFMPEG_PATH",
] as const;

/** Throws an Error with one line for each variable that is wrong. */
export function readEmbeddingSettings(env: Readonly<Record<string, string | undefined>>): EmbeddingSettings {
  const faults: string[] = [];
  const optional = <T>(name: typeof EMBEDDING_VARIABLES[number], parser: Parser<T>): T | undefined => {
    const text = env[name];
    if (text === undefined || text === "") return undefined;
    const value = parser.read(text);
    if (value === undefined) faults.push(`${name} must be ${parser.rule}`);
    return value;
  };
  const settings = {
    bindAddr: optional("EMBEDDING_SIDECAR_BIND_ADDR", address) ?? { hostname: "127.0.0.1", port: 7791 },
    queue: optional("EMBEDDING_SIDECAR_QUEUE", integer(0, 1024)) ?? 8,
    // Below the 2 s after which the service hangs up, so that it hears why.
    timeoutMs: optional("EMBEDDING_SIDECAR_TIMEOUT_MS", integer(10, 600_000)) ?? 1_500,
    ffmpegProgram: optional("EMBEDDING_SIDECAR_FFMPEG_PATH", word) ?? "ffmpeg",
  };
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return settings;
}

const word: Parser<string> = {
  rule: "a text without line breaks",
  read: (text) => /^[^\r\n]+$/.test(text) ? text : undefined,
};
