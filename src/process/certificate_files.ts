/** Reads the certificate and the private key of the HTTP/3 listener, and checks that they can be used. */

import { errorText } from "../base/log.ts";
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { Config } from "../contract/config.ts";
import type { World } from "../base/world.ts";
import type { Certificate } from "../http3/listener.ts";

const CHAIN = "SERVICE_H3_TLS_CERT_PATH";
const KEY = "SERVICE_H3_TLS_KEY_PATH";
const WAY_OUT = "./scripts/dev-certs makes both files for development, and SERVICE_TRANSPORT=h1h2 needs none";

/** Adds what is wrong to `faults`, each with the setting that names the file; then the result is null. */
export function readCertificate(
  { h3 }: Partial<Pick<Config, "h3">>,
  faults: string[],
  { now }: Pick<World, "now">,
): Certificate | null {
  if (h3?.tlsCertPath === undefined || h3.tlsKeyPath === undefined) return null;
  const chain = textOf(CHAIN, "a certificate", h3.tlsCertPath, faults);
  const certificate = chain === null
    ? null
    : parsed(CHAIN, h3.tlsCertPath, faults, () => checkedCertificate(chain, now()));
  const key = textOf(KEY, "a private key", h3.tlsKeyPath, faults);
  const privateKey = key === null ? null : parsed(KEY, h3.tlsKeyPath, faults, () => privateKeyOf(key));
  if (chain === null || certificate === null || key === null || privateKey === null) return null;
  if (!certificate.checkPrivateKey(privateKey)) {
    faults.push(
      fault(KEY, h3.tlsKeyPath, `hold the key of the certificate in ${JSON.stringify(h3.tlsCertPath)}`),
    );
    return null;
  }
  return { chain, key };
}

function textOf(name: string, what: string, path: string, faults: string[]): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    faults.push(fault(name, path, `name a file with ${what} in PEM`, errorText(error)));
    return null;
  }
}

function parsed<T>(name: string, path: string, faults: string[], read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    faults.push(fault(name, path, "name a file that can be used", errorText(error)));
    return null;
  }
}

/** The first certificate of the file, which clients check. Throws for one that they refuse. */
function checkedCertificate(chain: string, nowMs: number): X509Certificate {
  const certificate = certificateOf(chain);
  if (certificate.ca) throw new Error("its first certificate is that of an authority, not of a server");
  if (Date.parse(certificate.validTo) <= nowMs) throw new Error(`it was valid until ${certificate.validTo}`);
  return certificate;
}

/** OpenSSL's own words for what is wrong, such as `error:1E08010C:DECODER routines::unsupported`, help nobody. */
function certificateOf(chain: string): X509Certificate {
  try {
    return new X509Certificate(chain);
  } catch {
    throw new Error("it does not begin with a certificate in PEM");
  }
}

function privateKeyOf(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    const isEncrypted = /BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(text);
    throw new Error(isEncrypted ? "its key is protected by a passphrase" : "it has no private key in PEM");
  }
}

function fault(name: string, path: string, rule: string, why?: string): string {
  return `${name} must ${rule}, got ${JSON.stringify(path)}${
    why === undefined ? "" : `: ${why}`
  }; ${WAY_OUT}`;
}
