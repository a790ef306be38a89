/** TABLES of what the code of a Worker finds: global names, members of `Deno` and of `navigator`, each with
 * the reason why it may stay.
 */

// `worker_globals.ts` takes everything else away: what a new version of the runtime brings is gone until
// somebody has looked at it.

type Names = Readonly<Record<string, string>>;

/** Global names that a Worker keeps: by reason, names separated by spaces. */
export const KEPT_GLOBALS: Names = {
  "the language":
    "AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean DataView " +
    "Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array " +
    "Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set " +
    "SharedArrayBuffer String SuppressedError Symbol SyntaxError Temporal TypeError URIError Uint16Array Uint32Array Uint8Array " +
    "Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite " +
    "isNaN parseFloat parseInt undefined unescape",
  "runs in memory of its own": "WebAssembly",
  "data in memory":
    "Blob Buffer ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy DOMException DecompressionStream File " +
    "FileReader FormData Headers ReadableByteStreamController ReadableStream ReadableStreamBYOBReader ReadableStreamBYOBRequest " +
    "ReadableStreamDefaultController ReadableStreamDefaultReader TextDecoder TextDecoderStream TextEncoder TextEncoderStream " +
    "TransformStream TransformStreamDefaultController URL URLPattern URLSearchParams WritableStream WritableStreamDefaultController " +
    "WritableStreamDefaultWriter atob btoa structuredClone",
  "computes": "Crypto CryptoKey SubtleCrypto crypto",
  "events and time":
    "AbortController AbortSignal CloseEvent CustomEvent ErrorEvent Event EventTarget MessageEvent Performance " +
    "PerformanceEntry PerformanceMark PerformanceMeasure PerformanceObserver PerformanceObserverEntryList ProgressEvent " +
    "PromiseRejectionEvent QuotaExceededError clearImmediate clearInterval clearTimeout performance queueMicrotask reportError " +
    "setImmediate setInterval setTimeout",
  "the Worker itself, and ports to whom it was given one":
    "DedicatedWorkerGlobalScope MessageChannel MessagePort WorkerGlobalScope " +
    "WorkerLocation WorkerNavigator close location name navigator onerror onmessage onunhandledrejection postMessage self",
  "asks for the permission of the network": "EventSource Request Response WebSocket fetch",
  "replaced: starts the service's own Workers only": "Worker",
  "listed below, or by the test": "Deno console global process",
};

/** Names of `Deno` that a Worker keeps, by the reason why each is harmless. */
export const KEPT_DENO: Names = {
  "says what the program was told, or what it is":
    "args build errors exitCode inspect noColor pid ppid version SeekMode",
  "asks for permission to read":
    "FsFile cwd execPath lstat lstatSync open openSync readDir readDirSync readFile readFileSync readLink " +
    "readLinkSync readTextFile readTextFileSync realPath realPathSync stat statSync watchFs",
  "asks for permission to write":
    "chmod chmodSync chown chownSync copyFile copyFileSync create createSync link linkSync makeTempDir " +
    "makeTempDirSync makeTempFile makeTempFileSync mkdir mkdirSync remove removeSync rename renameSync symlink symlinkSync truncate " +
    "truncateSync umask utime utimeSync writeFile writeFileSync writeTextFile writeTextFileSync",
  "asks for permission to run, or reaches the process itself":
    "ChildProcess Command addSignalListener exit kill removeSignalListener",
  "asks for permission of the environment": "env",
  "asks for permission of the system":
    "cpuUsage gid hostname loadavg memoryUsage networkInterfaces osRelease osUptime " +
    "systemMemoryInfo uid",
  "asks for permission to load native code": "dlopen",
  "gives permissions up; nobody is there to grant some": "PermissionStatus Permissions permissions",
  "asks for permission of the network":
    "HttpClient QuicBidirectionalStream QuicConn QuicEndpoint QuicIncoming QuicListener " +
    "QuicReceiveStream QuicSendStream connectQuic connectTls createHttpClient listenTls resolveDns startTls upgradeWebSocket",
  "replaced: asks for permission of the network, and reaches no abstract socket":
    "connect listen listenDatagram serve",
  "the streams of the process": "consoleSize isatty stderr stdin stdout",
  "timers": "refTimer unrefTimer",
};

export const KEPT_NAVIGATOR: Names = {
  "says what the machine and the runtime are":
    "constructor hardwareConcurrency language languages platform userAgent",
};

/** The names of a table. */
export function namesOf(table: Names): string[] {
  return Object.values(table).flatMap((names) => names.split(" "));
}
