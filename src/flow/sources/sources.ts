/** Opens a `source_uri`, local or remote, as an input of ffmpeg. See docs/api/ingest.md#sources. */

import { join } from "node:path";
import { PermitQueue } from "../../sharing/permit_queue.ts";
import { Refusal } from "../../contract/refusal.ts";
import { unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import {
  fetchedInput,
  fileInput,
  hlsInput,
  type MediaInput,
  mjpegInput,
  rtspInput,
} from "../../media/input.ts";
import type { StreamsBy } from "../../media/broker/cage.ts";
import { socketName } from "../../media/broker/job_paths.ts";
import { resolveLocalSource, type SourcePolicy } from "../../media/files/source.ts";
import {
  type RemoteSource,
  remoteSource,
  type RemoteSourceToggles,
  sourceFault,
} from "../../model/sources/remote_source.ts";
import type { NamedSource } from "../../model/sources/source_file.ts";
import { nameInSourceUri, sourceUriOf } from "../../model/source_name.ts";
import type { HlsProgress } from "../../remote/sources/hls_progress.ts";
import type { NamedSourceLogin, RelayedSource, SourceRelays } from "../../remote/sources/relays.ts";
import { PartialFile } from "../../store/files/partial_file.ts";
import type { NamedSources } from "./named_sources.ts";

export interface SourcesOptions {
  readonly world: World;
  readonly local: Omit<SourcePolicy, "principalKey">;
  /** For fetched files, which are removed after use. */
  readonly tempDir: string;
  /** How ffmpeg reaches relays and tunnels. */
  readonly streams: StreamsBy | Promise<StreamsBy>;
  /** For the Unix sockets of relays and tunnels behind a forwarder. */
  readonly socketDir: string;
  readonly toggles: RemoteSourceToggles;
  /** Through which remote sources are read. */
  readonly relays: SourceRelays;
  readonly named: NamedSources;
  /** The name that the upload at a path had; null for other files. */
  readonly labelOf: (path: string) => string | null;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
}

/** A source that was found to be admitted, before anybody connects to it. */
export interface LocatedSource {
  /** As events and answers name it. */
  readonly uri: string;
  /** The URI or path itself, which only the operator knows where the source is a named one. */
  readonly target: string;
  /** Null for a local file. */
  readonly remote: RemoteSource | null;
  readonly named?: NamedSourceLogin;
}

/** An opened source. Disposing it removes what was fetched for it and closes the connection to it. */
export interface OpenedSource extends AsyncDisposable {
  /** As the caller sent it, trimmed, so `source:<name>` for a named one; events and responses report it. */
  readonly uri: string;
  readonly input: MediaInput;
  /** The name that an upload had; absent for other sources. */
  readonly name?: string;
  /** How far an HLS source is read. */
  readonly progress?: HlsProgress;
  /**
   * The result of `work` on the input. Where ffmpeg failed because the connection to the source was refused
   * or broke, the error is that of the connection, as ffmpeg itself does not know the reason.
   */
  explained<T>(work: Promise<T>): Promise<T>;
  /** Why it gives no more media, where its relay or tunnel knows it; undefined where it does not. */
  lossReason(): string | undefined;
  /** Why a part of the source did not come, as far as its connection knows; null for nothing. */
  fault(): string | null;
}

export class Sources implements Disposable {
  readonly #options: SourcesOptions;
  readonly #fetches: PermitQueue;

  constructor(options: SourcesOptions) {
    this.#options = options;
    this.#fetches = new PermitQueue({
      limit: FETCHES_MAX,
      waiterLimit: WAITERS_MAX,
      what: "fetches of remote sources",
      refusal: "provider_saturated",
      isShared: options.isShared,
    });
  }

  /**
   * Finds a local file, fetches a remote one, or opens a relay or a tunnel to a stream. Errors: 422
   * `source_uri` for every fault of the source, 503 `storage_unavailable`, and the reason of `signal`.
   */
  async open(sourceUri: string, principalKey: string, signal: AbortSignal): Promise<OpenedSource> {
    return await this.openLocated(this.locate(sourceUri, principalKey), principalKey, signal);
  }

  /**
   * What a `source_uri` names. Errors: 422 `source_uri`. An unknown name and one that is not the principal's
   * are the same.
   */
  locate(
    sourceUri: string,
    principalKey: string,
    options: { readonly isWatched?: boolean } = {},
  ): LocatedSource {
    const { toggles, named } = this.#options;
    const name = nameInSourceUri(sourceUri);
    if (name === null) {
      return { uri: sourceUri.trim(), target: sourceUri, remote: remoteSource(sourceUri, toggles, options) };
    }
    const source = named.find(name, principalKey);
    if (source === null) {
      throw sourceFault("names no source that this caller may use; GET /v1/sources lists them");
    }
    return this.ofNamed(source, options);
  }

  /** What a named source is. Errors: 422 `source_uri` where the settings do not admit it. */
  ofNamed(source: NamedSource, options: { readonly isWatched?: boolean } = {}): LocatedSource {
    const remote = remoteSource(source.uri, this.#options.toggles, options);
    return {
      uri: sourceUriOf(source.name),
      target: source.uri,
      remote,
      named: { credentials: remote === null ? null : source.credentials },
    };
  }

  /**
   * Opens what `locate` has found. Of an HLS source that is watched nothing is read again that was read
   * `before`; one that is not watched ends where its playlist has had nothing new for a while.
   */
  async openLocated(
    { uri, target, remote, named }: LocatedSource,
    principalKey: string,
    signal: AbortSignal,
    watched: { readonly before: HlsProgress | null } | null = null,
  ): Promise<OpenedSource> {
    if (remote === null) {
      const local = { ...this.#options.local, principalKey };
      const found = await resolveLocalSource(target, local);
      const name = this.#options.labelOf(found.path);
      return { ...opened(named ? uri : found.uri, fileInput(found.path)), ...(name !== null && { name }) };
    }
    const source = { remote, ...(named && { named }) };
    if (remote.kind === "file") return await this.#fetch(source, uri, { principalKey, signal });
    const socket = await this.#newSocket(signal);
    const options = { socket, before: watched?.before ?? null, endsStill: watched === null };
    const relay = await this.#options.relays.openStream(source, options, signal);
    const { progress } = relay;
    const input = INPUTS[remote.kind](relay.url, socket);
    return { ...opened(uri, input, relay), ...(progress && remote.kind === "hls" && { progress }) };
  }

  [Symbol.dispose](): void {
    this.#fetches.close();
  }

  async #fetch(
    source: RelayedSource,
    uri: string,
    { principalKey, signal }: { readonly principalKey: string; readonly signal: AbortSignal },
  ): Promise<OpenedSource> {
    const { world, tempDir, relays } = this.#options;
    await using fetching = new AsyncDisposableStack();
    fetching.use(await this.#fetches.acquire({ principalKey, signal }));
    const file = fetching.use(await PartialFile.create(tempDir, world));
    await relays.fetchFile(source, (bytes) => file.write(bytes), signal);
    return opened(uri, fetchedInput(file.path), fetching.move());
  }

  /** The path of a Unix socket for a relay or a tunnel; null where it listens on the machine's loopback. */
  async #newSocket(signal: AbortSignal): Promise<string | null> {
    const { socketDir, world } = this.#options;
    const streams = await unlessAborted(Promise.resolve(this.#options.streams), signal);
    if (streams === "none") {
      throw sourceFault(
        "HLS and RTSP sources are not admitted by this service: SERVICE_DECODER_CAGE requires that its decoders have no " +
          "network, and this machine has no forwarder for them",
      );
    }
    return streams === "forwarder" ? join(socketDir, socketName(world.randomBytes(8))) : null;
  }
}

const INPUTS = { hls: hlsInput, mjpeg: mjpegInput, rtsp: rtspInput } as const;

/**
 * The bound on remote fetches: remote files that are fetched or decoded at once. Each may take 256 MiB of the
 * disk until it was decoded.
 */
const FETCHES_MAX = 16;
/** Requests that may wait for a fetch. */
const WAITERS_MAX = 4096;

/** The relay, tunnel or fetched file of a source, held as long as the source is decoded. */
interface HeldResource extends AsyncDisposable {
  /** The first fault of the connection to the source. */
  readonly fault?: Refusal | undefined;
  /** Resolves when what it knows stands here. */
  told?(): Promise<void>;
  /** Why no more media comes from it now; undefined as long as some may. */
  readonly end?: string | undefined;
}

function opened(uri: string, input: MediaInput, held?: HeldResource): OpenedSource {
  return {
    uri,
    input,
    async explained(work) {
      try {
        return await work;
      } catch (error) {
        if (!(error instanceof Refusal && error.kind === "validation_error")) throw error;
        await held?.told?.();
        throw held?.fault ?? error;
      }
    },
    lossReason: () => held?.end,
    fault: () => held?.fault ? held.fault.details[0]?.message ?? held.fault.message : null,
    [Symbol.asyncDispose]: async () => await held?.[Symbol.asyncDispose](),
  };
}
