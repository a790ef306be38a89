/** One connection to the mirror database: makes the tables where they are missing, and writes rows. */

import { connect, isIP, type Socket } from "node:net";
import postgres from "postgres";
import type { MirrorRow, MirrorTable } from "../model/mirror/rows.ts";
import { MIRROR_TABLES, MirrorStatements } from "../model/mirror/statements.ts";
import type { MirrorTarget } from "../model/mirror/target.ts";
import { unlessAborted } from "../base/wait.ts";

export interface MirrorConnecting {
  readonly target: MirrorTarget;
  readonly schema: string;
  /** PEM certificates of the authorities that `verify-full` trusts. */
  readonly roots: readonly string[];
}

/**
 * The error of a database that did not do what it was asked. The message names the reason, and has nothing of
 * the URL and of the rows.
 */
export class MirrorFault extends Error {
  override readonly name = "MirrorFault";

  /**
   * `refusesRow`: the database refuses the content of a row and will do so again; else it is worth another
   * attempt.
   */
  constructor(message: string, readonly refusesRow: boolean) {
    super(message);
  }
}

/**
 * One connection. After the first {@link MirrorFault} that does not refuse a row, and after an abort, it is
 * of no use any more: its owner disposes it and opens the next one. Disposing it ends what is under way at
 * once.
 */
export class MirrorDatabase implements AsyncDisposable {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<void>;
  readonly #sql: postgres.Sql;
  readonly #sockets: readonly Socket[];
  readonly #statements: MirrorStatements;

  private constructor(
    sql: postgres.Sql,
    sockets: readonly Socket[],
    ended: Promise<void>,
    schema: string,
  ) {
    this.#sql = sql;
    this.#sockets = sockets;
    this.ended = ended;
    this.#statements = new MirrorStatements(schema);
  }

  /** Connects and makes what is missing. Rejects with {@link MirrorFault}, or with the reason of `signal`. */
  static async open(
    { target, schema, roots }: MirrorConnecting,
    signal: AbortSignal,
  ): Promise<MirrorDatabase> {
    const sockets: Socket[] = [];
    const ended = Promise.withResolvers<void>();
    const sql = postgres({
      host: target.hostname,
      port: target.port,
      user: target.user,
      pass: target.password,
      database: target.database,
      ssl: tlsOf(target, roots),
      max: 1,
      // The owner opens a new connection when it wants one, and bounds every wait.
      connect_timeout: 0,
      idle_timeout: 0,
      max_lifetime: 0,
      // Poolers that give each transaction another connection know no prepared statements.
      prepare: false,
      fetch_types: false,
      connection: { application_name: "service-mirror" },
      onnotice: () => {},
      onclose: () => ended.resolve(),
      socket: () => {
        if (sockets.length > 0) throw new Error("the connection has ended");
        return connected(target, sockets);
      },
    } as postgres.Options<Record<string, never>>);
    const database = new MirrorDatabase(sql, sockets, ended.promise, schema);
    try {
      await database.#ask(() => database.#makeTables(), signal);
      return database;
    } catch (error) {
      await database[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The highest number of a row of this instance; 0 where there is none. */
  async lastSeq(instanceId: string, signal: AbortSignal): Promise<number> {
    const [row] = await this.#ask(() => this.#sql.unsafe(this.#statements.lastSeq, [instanceId]), signal);
    return Number(row?.seq ?? 0);
  }

  /** Writes all rows, or none; those that are there already stay as they are. */
  async write(instanceId: string, rows: readonly MirrorRow[], signal: AbortSignal): Promise<void> {
    const byTable = Map.groupBy(rows, ({ table }) => table);
    const insert = (sql: postgres.Sql | postgres.TransactionSql, table: MirrorTable) => {
      const values = byTable.get(table)!.map((row) => row.values);
      return sql.unsafe(this.#statements.insert(table), [instanceId, JSON.stringify(values)]);
    };
    const tables = [...byTable.keys()];
    if (tables.length === 1) await this.#ask(() => insert(this.#sql, tables[0]!), signal);
    else {
      await this.#ask(
        () =>
          this.#sql.begin(async (sql) => void await Promise.all(tables.map((table) => insert(sql, table)))),
        signal,
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ending = this.#sql.end({ timeout: 0 });
    // A peer that does not answer would keep the socket open, as the end of a connection waits for it.
    for (const socket of this.#sockets) socket.destroy();
    await ending;
  }

  async #makeTables(): Promise<void> {
    const missing: MirrorTable[] = [];
    for (const table of MIRROR_TABLES) {
      if (!await this.#exists(this.#statements.exists(table))) missing.push(table);
    }
    if (missing.length === 0) return;
    if (!await this.#exists(this.#statements.schemaExists)) {
      await this.#sql.unsafe(this.#statements.createSchema);
    }
    for (const table of missing) await this.#sql.unsafe(this.#statements.create(table));
  }

  async #exists(question: string): Promise<boolean> {
    const [row] = await this.#sql.unsafe(question);
    return row!.exists;
  }

  async #ask<T>(work: () => PromiseLike<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    // A query begins with its first `then`.
    const asked = (async () => await work())();
    try {
      return await unlessAborted(asked, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw faultOf(error);
    }
  }
}

function tlsOf({ hostname, tls: mode }: MirrorTarget, roots: readonly string[]) {
  if (mode === "disable") return false;
  if (mode !== "verify-full") return mode;
  return {
    rejectUnauthorized: true,
    ca: [...roots],
    // Compared with the certificate; an address is no server name.
    host: hostname,
    ...(isIP(hostname) === 0 && { servername: hostname }),
  };
}

/**
 * Opens a socket, and resolves when it is connected. The socket is in `sockets` from the start, so that its
 * owner can end it at any time.
 */
function connected({ hostname: host, port }: MirrorTarget, sockets: Socket[]): Promise<Socket> {
  const socket = connect({ host, port });
  sockets.push(socket);
  return new Promise((resolve, reject) => {
    socket.once("connect", () => {
      socket.off("error", reject).off("close", onClose);
      // The library takes the name for TLS from here.
      resolve(Object.assign(socket, { host, port }));
    });
    const onClose = () => reject(new Error("the connection has ended"));
    socket.once("error", reject).once("close", onClose);
  });
}

/**
 * SQLSTATEs, or their classes, that are about the content of a row: data exceptions, broken constraints, a
 * check option of a view, too long.
 */
const ABOUT_ROWS = /^(22|23|44|54000)/;
const REASON_CHARACTERS_MAX = 200;

/**
 * The reason of an error without what it may repeat of a row: a message about a row has its values, so its
 * SQLSTATE stands for it.
 */
function faultOf(error: unknown): MirrorFault {
  const { code, message, severity } = error as {
    readonly code?: string;
    readonly message: string;
    readonly severity?: string;
  };
  const isFromServer = severity !== undefined;
  if (isFromServer && code !== undefined && ABOUT_ROWS.test(code)) {
    return new MirrorFault(`SQLSTATE ${code}`, true);
  }
  const reason = [message, code].filter((part) => part !== undefined && part !== "").join(", ");
  return new MirrorFault(reason.slice(0, REASON_CHARACTERS_MAX), false);
}
