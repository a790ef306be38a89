/** Random idempotency keys, and the cryptography of the runtime. */

/** The Web Crypto of the runtime. Node.js 18 has it in a module only. */
export async function webCrypto(): Promise<typeof globalThis.crypto> {
  if (globalThis.crypto) return globalThis.crypto;
  const name = "node:crypto"; // A variable, so that bundlers for browsers leave the import alone.
  return ((await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
    webcrypto: typeof globalThis.crypto;
  })
    .webcrypto;
}

/** 128 random bits in hex. */
export async function randomKey(): Promise<string> {
  return toHex((await webCrypto()).getRandomValues(new Uint8Array(16)));
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
