/** `keygen` and `sign`, for where releases are made: they need no device, no network and no other program. */

import { CliError } from "../../cli/failure.ts";
import { sha256Of } from "../device/artifact.ts";
import { fingerprint, newKeyPair, readPrivateKey, readText, statOf } from "../device/keys.ts";
import { readDraft, signManifest } from "../release/manifest.ts";
import type { Command } from "../session.ts";

export const keygen: Command = async ({ out }, [prefix]) => {
  const { privatePem, publicPem } = await newKeyPair();
  const [privatePath, publicPath] = [`${prefix}.key`, `${prefix}.pub`];
  writeNew(privatePath, privatePem, 0o600);
  writeNew(publicPath, publicPem, 0o644);
  const made = {
    private_key: privatePath,
    public_key: publicPath,
    fingerprint: await fingerprint(publicPem),
  };
  out.record(made, Object.entries(made), publicPath);
};

export const sign: Command = async ({ out, signal }, [path], { privateKey, artifact }) => {
  const key = await readPrivateKey(privateKey as string);
  const draft = readText(path!);
  const whole = artifact === undefined ? draft : await filledIn(draft, artifact as string, signal);
  out.line(await signManifest(readDraft(whole), key));
};

/** The text of a manifest with the figures of a file. */
async function filledIn(text: string, path: string, signal: AbortSignal): Promise<string> {
  const { size } = statOf(path);
  using file = Deno.openSync(path);
  const sha256 = await sha256Of(file, signal);
  try {
    const draft = JSON.parse(text);
    return JSON.stringify({ ...draft, artifact: { ...draft.artifact, sha256, size_bytes: size } });
  } catch {
    return text;
  }
}

function writeNew(path: string, text: string, mode: number): void {
  try {
    using file = Deno.openSync(path, { write: true, createNew: true, mode });
    file.writeSync(new TextEncoder().encode(text));
    file.syncSync();
  } catch (error) {
    throw error instanceof Deno.errors.AlreadyExists
      ? new CliError("usage", `${path} is there already, and no key is replaced`)
      : new CliError("failed", `cannot write ${path}: ${(error as Error).message}`);
  }
}
