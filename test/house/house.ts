/** The house as data: which room may import which, and which room alone may touch what lies outside the code.
 */

/**
 * Room (folder of src/, or "composition" for main.ts and the files of src/process/ and src/service/) to the
 * rooms that it may import.
 */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  contract: ["base"],
  sharing: ["base", "contract"],
  model: ["base", "contract", "sharing"],
  store: ["base", "contract", "sharing", "model"],
  media: ["base", "contract", "sharing", "model"],
  rtc: ["base", "contract", "sharing", "model"],
  remote: ["base", "contract", "sharing", "model"],
  live: ["base", "contract", "sharing", "model", "rtc", "media"],
  http3: ["base", "contract", "sharing", "model"],
  flow: ["base", "contract", "sharing", "model", "store", "media", "remote", "live"],
  http: ["base", "contract", "sharing", "model", "flow"],
  sidecar: ["base", "contract", "sharing", "model"],
  data_tools: ["base", "contract", "sharing", "model", "store", "remote"],
  composition: [
    ...["base", "contract", "sharing", "model", "store", "media", "rtc", "remote", "live", "flow", "http"],
    ...["http3", "data_tools"],
  ],
};

/**
 * Files that nobody imports: a person, a Worker or a browser starts them, or a script makes a file of them.
 */
export const ENTRIES: readonly RegExp[] = [
  /^main\.ts$/,
  /^service\/service_worker\.ts$/,
  /^media\/files\/\w*worker\.ts$/,
  /^live\/live_worker\.ts$/,
  /^remote\/sources\/relay_worker\.ts$/,
  /^flow\/reason\/schema_worker\.ts$/,
  /^data_tools\/data_tools_worker\.ts$/,
  /^sidecar\/audio\/audio_main\.ts$/,
  /^sidecar\/embedding\/embedding_main\.ts$/,
  /^http\/description\/openapi\.ts$/,
];

/** What one or a few rooms may do and nobody else. `code` is the text of a file without its comments. */
export const TOUCHES: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly rooms: readonly string[];
  /** Single files of other rooms that may do it too. */
  readonly files?: readonly string[];
}[] = [
  {
    what: "starts a program",
    pattern: /\bDeno\.Command\b|"node:child_process"/,
    rooms: ["media", "sidecar"],
  },
  { what: "uses WebAssembly", pattern: /\bWebAssembly\b/, rooms: ["media"], files: ["base/worker_scope.ts"] },
  {
    what: "starts a Worker",
    pattern: /\bnew Worker\b|"node:worker_threads"/,
    rooms: ["media", "live", "composition"],
    files: ["flow/reason/output_schemas.ts", "base/worker_globals.ts", "remote/sources/relay_workers.ts"],
  },
  {
    what: "writes to disk",
    pattern:
      /\bDeno\.(create|writeFile|writeTextFile|rename|truncate|copyFile|symlink|link|chmod|chown|utime|makeTempFile)(Sync)?\b|\bDeno\.open(Sync)?\([^;]*\b(append|create|createNew|truncate): true|"node:fs(\/promises)?"/,
    rooms: ["store"],
    // Makes the empty file into which a program writes a clip, so that the program can be given that one file
    // only.
    files: ["media/broker/broker.ts"],
  },
  {
    // The named pipes through which frames arrive live in a folder that media makes and removes; the
    // composition makes the folders that the sandboxed service may then use.
    what: "makes folders or removes files",
    pattern: /\bDeno\.(mkdir|remove|makeTempDir)(Sync)?\b/,
    rooms: ["store", "media", "composition"],
  },
  {
    what: "calls out",
    pattern: /(?<![\w.#])fetch\((?!\w+\??:)|\bDeno\.connect(Tls)?\b|"node:(net|tls|https?)"/,
    rooms: ["remote", "sidecar"],
    // A process of its own, which passes the connections of ffmpeg on to the service's Unix sockets.
    files: ["process/forwarder_process.ts"],
  },
  { what: "opens UDP", pattern: /\bDeno\.listenDatagram\b|"node:dgram"/, rooms: ["rtc", "remote"] },
  {
    // A program that the broker started connects to a Unix socket of the Worker that asked for it.
    what: "serves",
    pattern: /\bDeno\.(serve|listen|listenTls)\b/,
    rooms: ["composition", "sidecar"],
    files: ["media/broker/tool_socket.ts"],
  },
  { what: "speaks QUIC", pattern: /\bDeno\.(QuicEndpoint\(|connectQuic\b)/, rooms: ["http3"] },
  {
    // Live and relay Workers may not see the environment, and a package that looks at it there would bring
    // the Worker down: its entry puts an empty one in the place before it loads the package.
    what: "reads the environment",
    pattern: /\bDeno\.(env|args|exit|addSignalListener)\b|\bprocess\.env\b|"node:process"/,
    rooms: ["composition", "sidecar"],
    // The second one is the text of a program that is written into evidence bundles.
    files: ["live/live_worker.ts", "remote/sources/relay_worker.ts", "store/bundle/bundle_verifier.ts"],
  },
  {
    what: "reads a clock",
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.(now|timeOrigin)\b/,
    rooms: ["base"],
  },
  {
    what: "sets a timer",
    pattern: /\bset(Timeout|Interval)\(|\bAbortSignal\.timeout\(/,
    rooms: ["base", "composition"],
  },
  {
    what: "draws a random number",
    pattern:
      /\bMath\.random\b|\bcrypto\.(getRandomValues|randomUUID)\b|\brandom(Bytes|UUID|Int)\b.*"node:crypto"/,
    rooms: ["base"],
  },
  {
    what: "prints",
    pattern: /\bconsole\.\w+\(|\bDeno\.std(out|err)\b/,
    rooms: ["base", "composition"],
    files: ["store/bundle/bundle_verifier.ts"],
  },
];

/** What some rooms must not do; without `rooms`, what no room does. */
export const FORBIDDEN: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly rooms?: readonly string[];
}[] = [
  { what: "awaits, although model is pure", pattern: /\bawait\b|\basync\b/, rooms: ["model"] },
  { what: "touches Deno, although model is pure", pattern: /\bDeno\.\w/, rooms: ["model"] },
  { what: "keeps state in a module", pattern: /^(export )?(let|var) /m },
  { what: "exports what another file has", pattern: /^export (?:type )?(?:\*(?: as \w+)?|\{[^}]*\}) from/m },
];

/** File names that say nothing of what is inside. */
export const EMPTY_NAMES = /(^|[_/])(utils?|helpers?|common|misc|shared)(_|\.ts)/;

/** How a file begins: with one sentence on one line, or with the first line of one. */
export const FIRST_LINE = /^\/\*\* \S.*(\. \*\/|[^/])$/;

/**
 * Package of the import map to the rooms that may import it; a package that is not here nobody may import.
 */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  hono: ["http"],
  "@fastify/busboy": ["http"],
  zod: ["model", "http", "media", "remote"],
  "prom-client": ["contract"],
  ajv: ["model"],
  werift: ["rtc"],
  mediabunny: ["media"],
  postgres: ["remote"],
  aws4fetch: ["remote"],
  "@opentelemetry/api": ["remote"],
  "@opentelemetry/resources": ["remote"],
  "@opentelemetry/sdk-trace-base": ["remote"],
  "@opentelemetry/otlp-transformer": ["remote"],
  "smol-toml": ["model"],
  re2js: ["model"],
  "@msgpack/msgpack": ["model", "remote"],
  "jpeg-js": ["sidecar"],
};
