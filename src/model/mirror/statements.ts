/** The tables of the mirror database, and the SQL that makes, fills and asks them. See
 * docs/deployment/mirror.md.
 */

import type { MirrorTable } from "./rows.ts";

/**
 * The columns with their types, without those of the key. `recorded_ms` arrives as a number and is kept as
 * `recorded_at`.
 */
const MIRROR_COLUMNS: Readonly<Record<MirrorTable, Readonly<Record<string, string>>>> = {
  feedback: {
    run_id: "text",
    session_id: "text",
    rating: "bigint",
    category: "text",
    feedback: "text",
  },
  descriptions: {
    run_id: "text",
    session_id: "text",
    event_type: "text",
    frame_index: "bigint",
    pts_ms: "bigint",
    confidence: "double precision",
    description: "text",
  },
};

export const MIRROR_TABLES = Object.keys(MIRROR_COLUMNS) as readonly MirrorTable[];

/** The statements for the tables in one schema. */
export class MirrorStatements {
  readonly #schema: string;

  constructor(schema: string) {
    this.#schema = quoted(schema);
  }

  /** Asks whether there is such a table that this user may name: the answer is `exists`. */
  exists(table: MirrorTable): string {
    return `SELECT to_regclass(${literal(this.#nameOf(table))}) IS NOT NULL AS "exists"`;
  }

  /**
   * Asks whether there is such a schema: the answer is `exists`. A user who may make no schema is also
   * refused to make one that exists.
   */
  get schemaExists(): string {
    return `SELECT to_regnamespace(${literal(this.#schema)}) IS NOT NULL AS "exists"`;
  }

  get createSchema(): string {
    return `CREATE SCHEMA IF NOT EXISTS ${this.#schema}`;
  }

  create(table: MirrorTable): string {
    const columns = Object.entries(MIRROR_COLUMNS[table]).map(([name, type]) => `${name} ${type} NOT NULL`);
    return `CREATE TABLE IF NOT EXISTS ${
      this.#nameOf(table)
    } (instance_id text NOT NULL, seq bigint NOT NULL, ${
      columns.join(", ")
    }, recorded_at timestamptz NOT NULL, PRIMARY KEY (instance_id, seq))`;
  }

  /**
   * Inserts rows: takes the instance id, and the rows as the JSON of an array. Rows that are there already
   * stay as they are.
   */
  insert(table: MirrorTable): string {
    const names = Object.keys(MIRROR_COLUMNS[table]);
    const types = Object.entries(MIRROR_COLUMNS[table]).map(([name, type]) => `${name} ${type}`);
    return `INSERT INTO ${this.#nameOf(table)} (instance_id, seq, ${names.join(", ")}, recorded_at) ` +
      `SELECT $1::text, seq, ${names.join(", ")}, to_timestamp(recorded_ms / 1000.0) ` +
      `FROM json_to_recordset($2::text::json) AS given(seq bigint, ${
        types.join(", ")
      }, recorded_ms bigint) ` +
      "ON CONFLICT DO NOTHING";
  }

  /**
   * Asks for the highest number of an instance's rows in any table: takes its id; `seq` is the number as
   * text, or null.
   */
  get lastSeq(): string {
    const highest = MIRROR_TABLES.map((table) =>
      `(SELECT max(seq) FROM ${this.#nameOf(table)} WHERE instance_id = $1::text)`
    );
    return `SELECT greatest(${highest.join(", ")})::text AS seq`;
  }

  #nameOf(table: MirrorTable): string {
    return `${this.#schema}.${table}`;
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
