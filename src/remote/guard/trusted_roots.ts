/** The certificate authorities that outbound connections trust. */

import * as tls from "node:tls";

/**
 * PEM certificates: those of the runtime, and those that the operator has installed on the machine, so that a
 * server with a certificate of the operator's own authority is trusted. Needs the permission `sys: ["ca"]`.
 */
export function trustedRoots(): readonly string[] {
  return [...new Set([...tls.getCACertificates("bundled"), ...tls.getCACertificates("system")])];
}
