/** Where the mirror database is, and how its connection is protected: what SERVICE_MIRROR_URL says. */

/** How the connection is protected, as PostgreSQL's own clients name it. See docs/deployment/mirror.md. */
export type TlsMode = "disable" | "prefer" | "require" | "verify-full";

export interface MirrorTarget {
  /** The host: a name or an address, IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tls: TlsMode;
}

const PORT = 5432;
const TLS_MODE = "prefer" satisfies TlsMode;

/** The target that a URL names, which the table of settings has accepted. */
export function mirrorTarget(url: string): MirrorTarget {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const user = decodeURIComponent(username);
  return {
    hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? PORT : Number(port),
    user,
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || user,
    tls: (searchParams.get("sslmode") ?? TLS_MODE) as TlsMode,
  };
}

/**
 * Names the place of the rows: it differs when they go to another database or schema, and has no secret in
 * it.
 */
export function placeOf({ hostname, port, database }: MirrorTarget, schema: string): string {
  return JSON.stringify([hostname, port, database, schema]);
}
