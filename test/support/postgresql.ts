/** A real PostgreSQL on loopback for a test: a cluster in a folder of its own, with a user, a database and
 * TLS.
 */

import { dirname, join } from "node:path";
import postgres from "postgres";
import { TEST_TLS } from "./http/tls_server.ts";
import { type Need, programOnPath } from "./needs.ts";

export const POSTGRESQL: Need = {
  isMet: () => programOnPath("initdb") !== null,
  reason: "PostgreSQL is not installed",
};

/**
 * The owner of the database `mirror`, who may make schemas there. Characters that a URL has to escape are in
 * the password.
 */
export const MIRROR_USER = { name: "mirror", password: "p@ss/w:rd%" } as const;
const ADMIN = "admin";
const ADMIN_PASSWORD = "of the administrator";

/** PostgreSQL refuses to run as root. */
const NOBODY = 65534;

export interface UrlOptions {
  readonly user?: string;
  readonly password?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly sslmode?: string;
}

export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly #folder: string;
  readonly #settings: string[];
  readonly #isTls: boolean;
  #isRunning = false;

  /** `isTls`: whether it accepts TLS, with the test certificate. */
  static async start({ isTls = false }: { readonly isTls?: boolean } = {}): Promise<PostgresServer> {
    const server = new PostgresServer(isTls);
    await server.#initialize(isTls);
    await server.resume();
    await server.query(`CREATE ROLE ${MIRROR_USER.name} LOGIN PASSWORD '${MIRROR_USER.password}'`);
    await server.query(`CREATE DATABASE mirror OWNER ${MIRROR_USER.name}`);
    return server;
  }

  private constructor(isTls: boolean) {
    this.#isTls = isTls;
    this.#folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "postgresql-test-" }));
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = listener.addr.port;
    this.#settings = [
      `port=${this.port}`,
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      "fsync=off",
      "max_connections=20",
      "shared_buffers=1MB",
    ];
  }

  /** Starts it, or starts it again, unless it runs. */
  async resume({ isTls = this.#isTls }: { readonly isTls?: boolean } = {}): Promise<void> {
    if (this.#isRunning) return;
    const options = [...this.#settings, `ssl=${isTls ? "on" : "off"}`].map((setting) => `-c ${setting}`).join(
      " ",
    );
    await this.#run("pg_ctl", [
      "start",
      "-w",
      "-s",
      "-D",
      this.#data,
      "-l",
      join(this.#folder, "log"),
      "-o",
      options,
    ]);
    this.#isRunning = true;
  }

  /** Ends it at once, as a crash would. */
  async crash(): Promise<void> {
    if (!this.#isRunning) return;
    await this.#run("pg_ctl", ["stop", "-w", "-s", "-D", this.#data, "-m", "immediate"]);
    this.#isRunning = false;
  }

  /** Runs a statement as the administrator. */
  async query(text: string, database = "postgres"): Promise<Record<string, unknown>[]> {
    const { port } = this;
    const sql = postgres({
      ...{ host: "127.0.0.1", port, user: ADMIN, pass: ADMIN_PASSWORD, database },
      ...{ max: 1, fetch_types: false, onnotice: () => {} },
    } as postgres.Options<Record<string, never>>);
    try {
      return [...await sql.unsafe(text)];
    } finally {
      await sql.end();
    }
  }

  /** What the table of the mirror has, in the order of the events. */
  rows(table: "feedback" | "descriptions", schema = "service"): Promise<Record<string, unknown>[]> {
    return this.query(`SELECT * FROM "${schema}".${table} ORDER BY seq`, "mirror");
  }

  /** Address for SERVICE_MIRROR_URL. */
  url({ user, password, port, hostname, sslmode }: UrlOptions = {}): string {
    const name = encodeURIComponent(user ?? MIRROR_USER.name);
    const secret = encodeURIComponent(password ?? MIRROR_USER.password);
    const query = sslmode === undefined ? "" : `?sslmode=${sslmode}`;
    return `postgres://${name}:${secret}@${hostname ?? "127.0.0.1"}:${port ?? this.port}/mirror${query}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
    Deno.removeSync(this.#folder, { recursive: true });
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  async #initialize(isTls: boolean): Promise<void> {
    const passwordFile = join(this.#folder, "password");
    Deno.writeTextFileSync(passwordFile, ADMIN_PASSWORD);
    this.#own(this.#folder, passwordFile);
    await this.#run("initdb", [
      ...["-D", this.#data, "-U", ADMIN, "--pwfile", passwordFile, "--auth", "scram-sha-256"],
      ...["--no-sync", "--encoding", "UTF8", "--locale", "C"],
    ]);
    if (!isTls) return;
    for (const [name, text] of [["server.crt", TEST_TLS.cert], ["server.key", TEST_TLS.key]] as const) {
      const path = join(this.#data, name);
      Deno.writeTextFileSync(path, text, { mode: 0o600 });
      this.#own(path);
    }
  }

  #own(...paths: string[]): void {
    if (Deno.uid() === 0) { for (const path of paths) Deno.chownSync(path, NOBODY, NOBODY); }
  }

  async #run(program: string, args: string[]): Promise<void> {
    const { success } = await new Deno.Command(join(dirname(programOnPath("initdb")!), program), {
      args,
      cwd: this.#folder,
      env: { LC_ALL: "C" },
      stdin: "null",
      stdout: "null",
      // The server inherits it and holds it open, so it cannot be read to its end.
      stderr: "null",
      ...(Deno.uid() === 0 && { uid: NOBODY, gid: NOBODY }),
    }).output();
    if (!success) throw new Error(`${program} ${args.join(" ")} failed`);
  }
}

/** Passes TCP connections on to a port of this machine, late, cut or not at all, as the test says. */
export class SlowWire implements AsyncDisposable {
  /** Milliseconds by which each piece of bytes arrives later. */
  delayMs = 0;
  /** Whether nothing arrives any more, while connections stay open. */
  isHung = false;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.Conn>();
  readonly #targetPort: number;
  readonly #accepting: Promise<void>;
  #pumps: Promise<void>[] = [];

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#accepting = this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** Ends the connections that there are. */
  cut(): void {
    for (const connection of this.#open) close(connection);
    this.#open.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    this.cut();
    await Promise.all(this.#pumps);
  }

  async #accept(): Promise<void> {
    for await (const near of this.#listener) {
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#targetPort }).catch(() => null);
      if (far === null) {
        close(near);
        continue;
      }
      this.#open.add(near).add(far);
      this.#pumps.push(this.#pump(near, far), this.#pump(far, near));
    }
  }

  async #pump(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    try {
      const buffer = new Uint8Array(64 * 1024);
      for (let got = await from.read(buffer); got !== null; got = await from.read(buffer)) {
        if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
        if (this.isHung) continue;
        for (let sent = 0; sent < got;) sent += await to.write(buffer.subarray(sent, got));
      }
    } catch {
      // cut
    } finally {
      close(to);
      close(from);
    }
  }
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // closed already
  }
}
