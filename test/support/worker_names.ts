/** TABLES of what Workers of the service do not find, and of Node's modules, which every Worker can load,
 * each with its reason.
 */

type Names = Readonly<Record<string, string>>;

export interface Scope {
  readonly globals: readonly string[];
  readonly deno: readonly string[];
  readonly navigator: readonly string[];
  /** The members of each module of Node. */
  readonly node: Readonly<Record<string, readonly string[]>>;
}

/** Global names. */
export const TAKEN_GLOBALS: Names = {
  "writes files and asks for no permission": "Cache CacheStorage caches",
  "opens device files and loads drivers, and asks for no permission":
    "GPU GPUAdapter GPUAdapterInfo GPUBindGroup GPUBindGroupLayout GPUBuffer GPUBufferUsage " +
    "GPUCanvasContext GPUColorWrite GPUCommandBuffer GPUCommandEncoder GPUCompilationInfo " +
    "GPUCompilationMessage GPUComputePassEncoder GPUComputePipeline GPUDevice GPUDeviceLostInfo GPUError " +
    "GPUInternalError GPUMapMode GPUOutOfMemoryError GPUPipelineError GPUPipelineLayout GPUQuerySet " +
    "GPUQueue GPURenderBundle GPURenderBundleEncoder GPURenderPassEncoder GPURenderPipeline GPUSampler " +
    "GPUShaderModule GPUShaderStage GPUSupportedFeatures GPUSupportedLimits GPUTexture GPUTextureUsage " +
    "GPUTextureView GPUUncapturedErrorEvent GPUValidationError",
  "reads and draws pictures, which ffmpeg does in its cage":
    "ImageBitmap ImageBitmapRenderingContext ImageData OffscreenCanvas createImageBitmap",
  "reaches other Workers": "BroadcastChannel Lock LockManager",
  "no code of the service uses it":
    "DOMMatrix DOMMatrixReadOnly DOMPoint DOMPointReadOnly DOMQuad DOMRect DOMRectReadOnly " +
    "NavigatorUAData WebSocketError WebSocketStream WebTransport WebTransportBidirectionalStream " +
    "WebTransportDatagramDuplexStream WebTransportError WebTransportReceiveStream WebTransportSendGroup " +
    "WebTransportSendStream",
};

/** Members of `Deno`. */
export const TAKEN_DENO: Names = {
  "inner functions of the runtime, which ask for no permission": "internal",
  "reads and writes memory by address": "UnsafeCallback UnsafeFnPointer UnsafePointer UnsafePointerView",
  "changes the folder of the whole process": "chdir",
  "no code of the service uses it":
    "Process bench lint run serveHttp spawn spawnAndWait spawnAndWaitSync telemetry test " +
    "upgradeWebTransport",
};

/** Members of `navigator`. */
export const TAKEN_NAVIGATOR: Names = {
  "opens device files and loads drivers, and asks for no permission": "gpu",
  "reaches other Workers": "locks",
  "no code of the service uses it": "userAgentData",
};

/** Names of Node's modules by what keeps each harmless; `leaks_worker.ts` tries it. */
export const NODE_MODULES: Names = {
  "works on what it is given":
    "assert assert/strict async_hooks buffer console constants crypto diagnostics_channel domain events " +
    "path path/posix path/win32 perf_hooks punycode querystring readline readline/promises stream " +
    "stream/consumers stream/promises stream/web string_decoder sys timers timers/promises url util " +
    "util/types zlib",
  "parts of others":
    "_http_agent _http_common _http_outgoing _http_server _stream_duplex _stream_passthrough " +
    "_stream_readable _stream_transform _stream_writable _tls_common _tls_wrap",
  "asks for permission to read or write; descriptors of others are not open in it": "fs fs/promises",
  "asks for permission of the network; opens no descriptors and no abstract sockets":
    "dgram dns dns/promises http http2 https net tls",
  "asks for permission to run": "child_process cluster",
  "asks for permission of the system or the environment": "inspector inspector/promises os process",
  "asks for permission to read where it is no terminal": "tty repl",
  "loads files that this Worker may read; native ones ask for permission": "module",
  "makes contexts without the runtime's functions": "vm",
  "options of the engine no longer change; files ask for permission to write": "v8 trace_events",
  "starts no test in a Worker, and no program": "node:test node:test/reporters",
  "its class is empty: it would make links and open descriptors": "wasi",
  "its class is empty: it would keep files in the temporary folder of the system": "node:sqlite",
  "its Workers cannot be made": "worker_threads",
};
