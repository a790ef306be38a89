/** The Ed25519 key of this instance, with which it signs what it hands out: a file of the data directory,
 * made when it is first needed.
 */

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { join } from "node:path";
import { readSecretFile } from "../files/secret_file.ts";

/** The file of the key: PEM, as `openssl genpkey -algorithm ed25519` makes it; mode 0600. */
export const INSTANCE_KEY_FILE = "instance-key.pem";

export class InstanceKey {
  readonly #key: KeyObject;
  /** The public key in PEM. */
  readonly publicKey: string;
  /** The id of the key: SHA-256 of the public key as DER. */
  readonly keyId: string;

  /**
   * Reads the key, and makes it where there is none. Errors: the file is open to others, or holds no such
   * key.
   */
  static open(dataDir: string): InstanceKey {
    const path = join(dataDir, INSTANCE_KEY_FILE);
    makeUnlessThere(path);
    const pem = readSecretFile(path) ?? "";
    try {
      const key = createPrivateKey(pem);
      if (key.asymmetricKeyType === "ed25519") return new InstanceKey(key);
    } catch {
      // its message could quote the file
    }
    throw new Error(
      `${path} holds no Ed25519 key in PEM; put a copy of it there, or move it away for a new one`,
    );
  }

  private constructor(key: KeyObject) {
    const publicKey = createPublicKey(key);
    this.#key = key;
    this.publicKey = publicKey.export({ type: "spki", format: "pem" }).toString();
    this.keyId = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("hex");
  }

  /** The signature of the bytes: 64 bytes. */
  sign(bytes: Uint8Array): Uint8Array {
    return new Uint8Array(sign(null, bytes, this.#key));
  }
}

function makeUnlessThere(path: string): void {
  try {
    if (Deno.lstatSync(path).isFile) return;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  try {
    using file = Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
    file.writeSync(new TextEncoder().encode(pem));
    file.syncSync();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error; // made meanwhile
  }
}
