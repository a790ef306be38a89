/** Turns a `source_uri` into something that can be decoded, wherever it is. Contract 2.1 and 2.2. */

import { Gate } from "../base/gate.ts";
import { Refusal } from "../base/refusal.ts";
import type { World } from "../base/world.ts";
import { fetchedInput, fileInput, hlsInput, type MediaInput, rtspInput } from "../media/input.ts";
import { resolveLocalSource, type SourcePolicy } from "../media/source.ts";
import { type RemoteSource, remoteSource, type RemoteSourceToggles } from "../model/sources/remote_source.ts";
import { HlsRelay } from "../remote/sources/hls_relay.ts";
import type { Outbound } from "../remote/guard/outbound.ts";
import { PinnedAgent } from "../remote/guard/pinned_agent.ts";
import { type FetchContext, prefetch } from "../remote/sources/prefetch.ts";
import { RtspTunnel } from "../remote/sources/rtsp_tunnel.ts";
import { PartialFile } from "../store/partial_file.ts";

export interface SourcesOptions {
  readonly world: World;
  readonly local: Omit<SourcePolicy, "principalKey">;
  /** What is fetched lies here as long as it is needed. */
  readonly tempDir: string;
  readonly toggles: RemoteSourceToggles & { readonly allowInsecureTls: boolean };
  readonly outbound: Outbound & { readonly roots: readonly string[] };
}

/** Something to decode. Disposing it removes what was fetched for it and closes the way to it. */
export interface OpenedSource extends AsyncDisposable {
  /** As the caller gave it, trimmed; what events and responses report. */
  readonly uri: string;
  readonly input: MediaInput;
  /**
   * What `work` on the input gives. Where a program failed because it was kept from something on the way, that is why it
   * is refused; the program itself knows nothing of it.
   */
  explained<T>(work: Promise<T>): Promise<T>;
}

export class Sources implements Disposable {
  readonly #options: SourcesOptions;
  readonly #agent: PinnedAgent;
  readonly #fetches = new Gate({
    limit: FETCHES_MAX,
    waiterLimit: WAITERS_MAX,
    what: "fetches of remote sources",
    refusal: "provider_saturated",
  });

  constructor(options: SourcesOptions) {
    this.#options = options;
    const { roots, reroute } = options.outbound;
    const { allowInsecureTls } = options.toggles;
    this.#agent = new PinnedAgent({ roots, allowInsecureTls, ...(reroute && { reroute }) });
  }

  /**
   * Finds a local file, fetches a remote one, or opens the only way there is to a stream. Errors: 422 `source_uri` for whatever
   * is wrong with the source, 503 `storage_unavailable`, and the reason of `signal`.
   */
  async open(sourceUri: string, principalKey: string, signal: AbortSignal): Promise<OpenedSource> {
    const { local, toggles } = this.#options;
    const remote = remoteSource(sourceUri, toggles);
    if (remote === null) {
      const { path, uri } = await resolveLocalSource(sourceUri, { ...local, principalKey });
      return opened(uri, fileInput(path));
    }
    const uri = sourceUri.trim();
    if (remote.kind === "file") return await this.#fetch(remote, uri, signal);
    if (remote.kind === "hls") {
      const relay = await HlsRelay.open(remote.url, this.#context(signal));
      return opened(uri, hlsInput(relay.url), relay);
    }
    const tunnel = await RtspTunnel.open(remote.url, this.#context(signal));
    return opened(uri, rtspInput(tunnel.url), tunnel);
  }

  /** Closes the connections that were kept open. */
  [Symbol.dispose](): void {
    this.#fetches.close();
    this.#agent[Symbol.dispose]();
  }

  async #fetch(remote: RemoteSource, uri: string, signal: AbortSignal): Promise<OpenedSource> {
    const { world, tempDir } = this.#options;
    await using fetching = new AsyncDisposableStack();
    fetching.use(await this.#fetches.acquire({ signal }));
    const file = fetching.use(await PartialFile.create(tempDir, world));
    await prefetch(remote, (bytes) => file.write(bytes), this.#context(signal));
    return opened(uri, fetchedInput(file.path), fetching.move());
  }

  #context(signal: AbortSignal): FetchContext {
    const { world, outbound: { resolve, allowPrivateMedia: allowPrivate = false } } = this.#options;
    return { world, agent: this.#agent, allowPrivate, signal, ...(resolve && { resolve }) };
  }
}

/** Remote files that are fetched or decoded at once; each may take 256 MiB of the disk all the while. */
const FETCHES_MAX = 16;
/** Callers that may wait for their turn; each is an open request, and the service bounds those before. */
const WAITERS_MAX = 4096;

/** What is held for a source as long as it is decoded. */
interface HeldResource extends AsyncDisposable {
  /** The first thing that went wrong on the way. */
  readonly fault?: Refusal | undefined;
}

function opened(uri: string, input: MediaInput, held?: HeldResource): OpenedSource {
  return {
    uri,
    input,
    async explained(work) {
      try {
        return await work;
      } catch (error) {
        throw error instanceof Refusal && error.kind === "validation_error" ? held?.fault ?? error : error;
      }
    },
    [Symbol.asyncDispose]: async () => await held?.[Symbol.asyncDispose](),
  };
}
