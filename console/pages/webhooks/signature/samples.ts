/** How a receiver checks the signature of a delivery, in three languages. */

export interface Sample {
  readonly name: string;
  /** What the code needs, in a sentence. */
  readonly about: string;
  readonly code: string;
}

const SHELL = `\
# The header webhook-signature must be one of the entries that this prints.
printf 'v1,%s\\n' "$({ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP"; cat body.json; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$SIGNING_SECRET" -binary | base64)"`;

const PYTHON = `\
import base64, hashlib, hmac, time

def is_genuine(headers, raw_body: bytes, signing_secret: str) -> bool:
    """raw_body is the body as received; headers takes names in any case."""
    key = bytes.fromhex(signing_secret)
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + raw_body
    digest = hmac.digest(key, signed, hashlib.sha256)
    expected = "v1," + base64.b64encode(digest).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(entry, expected) for entry in given)`;

const TYPESCRIPT = `\
/** rawBody is the body as received: parsing and printing it again would change its bytes. */
export async function isGenuine(
  headers: Headers,
  rawBody: ArrayBuffer,
  signingSecret: string,
): Promise<boolean> {
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  if (!/^\\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false;
  const secret = Uint8Array.from(signingSecret.match(/../g) ?? [], (hex) => parseInt(hex, 16));
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", secret, hmac, false, ["verify"]);
  const signed = await new Blob([\`\${id}.\${timestamp}.\`, rawBody]).arrayBuffer();
  for (const entry of (headers.get("webhook-signature") ?? "").split(" ")) {
    const [version, base64 = ""] = entry.split(",");
    if (version !== "v1" || !/^[A-Za-z0-9+/]{43}=$/.test(base64)) continue;
    const given = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    if (await crypto.subtle.verify("HMAC", key, given, signed)) return true;
  }
  return false;
}`;

/** By the name in the address. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
  shell: {
    name: "Shell",
    about: "With openssl. The body lies in body.json; the two headers and the secret are variables.",
    code: SHELL,
  },
  python: {
    name: "Python",
    about: "With its own library, from Python 3.7 on.",
    code: PYTHON,
  },
  typescript: {
    name: "TypeScript",
    about: "For Node.js from 20 on, Deno and Bun. The client library of the service has it as verifyWebhook.",
    code: TYPESCRIPT,
  },
};
