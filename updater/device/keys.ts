/** Ed25519 keys in PEM files, as openssl writes and reads them. No message ever has a private key. */

import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import { CliError } from "../../cli/failure.ts";

const FINGERPRINT_DIGITS = 16;

/** A new pair, both as PEM. */
export async function newKeyPair(): Promise<{ privatePem: string; publicPem: string }> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]) as CryptoKeyPair;
  return {
    privatePem: pemOf("PRIVATE KEY", await crypto.subtle.exportKey("pkcs8", pair.privateKey)),
    publicPem: pemOf("PUBLIC KEY", await crypto.subtle.exportKey("spki", pair.publicKey)),
  };
}

/** The private key of a file that its owner alone may read. */
export async function readPrivateKey(path: string): Promise<CryptoKey> {
  const { mode } = statOf(path);
  if (mode !== null && (mode & 0o077) !== 0) {
    const digits = (mode & 0o777).toString(8).padStart(4, "0");
    throw new CliError(
      "usage",
      `others may read the private key ${path} (mode ${digits})`,
      `chmod 600 ${path}`,
    );
  }
  const pem = readText(path);
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType !== "ed25519") throw new Error("another kind of key");
    const der = new Uint8Array(key.export({ format: "der", type: "pkcs8" }));
    return await crypto.subtle.importKey("pkcs8", der, "Ed25519", false, ["sign"]);
  } catch {
    throw new CliError("usage", `${path} must be an Ed25519 private key in PEM`);
  }
}

/** The public key of a PEM text; null where it is none. */
export async function publicKeyOf(pem: string): Promise<CryptoKey | null> {
  // A private key would be taken as its public half, and would then lie on the device.
  if (!pem.includes("BEGIN PUBLIC KEY")) return null;
  try {
    const key = createPublicKey(pem);
    if (key.asymmetricKeyType !== "ed25519") return null;
    const der = new Uint8Array(key.export({ format: "der", type: "spki" }));
    return await crypto.subtle.importKey("spki", der, "Ed25519", true, ["verify"]);
  } catch {
    return null;
  }
}

/** How people tell keys apart: the beginning of the SHA-256 of the public key. */
export async function fingerprint(pem: string): Promise<string> {
  const key = await publicKeyOf(pem);
  if (!key) return "no Ed25519 public key";
  const der = new Uint8Array(await crypto.subtle.exportKey("spki", key));
  return createHash("sha256").update(der).digest("hex").slice(0, FINGERPRINT_DIGITS);
}

export function readText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

export function statOf(path: string): Deno.FileInfo {
  try {
    return Deno.statSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): CliError {
  return error instanceof Deno.errors.NotFound
    ? new CliError("missing", `${path} does not exist`)
    : new CliError("failed", `cannot read ${path}: ${(error as Error).message}`);
}

function pemOf(label: string, der: ArrayBuffer): string {
  const lines = new Uint8Array(der).toBase64().match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
