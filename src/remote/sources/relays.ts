/** Whatever stands between ffmpeg and the servers of sources: relays, tunnels and fetches, all opened in one
 * way.
 */

import type { IpNetwork } from "../../base/ip_address.ts";
import type { Refusal } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { RemoteSource } from "../../model/sources/remote_source.ts";
import { Authorization, type SourceCredentials } from "../../model/sources/source_credentials.ts";
import type { TrustedOutbound } from "../guard/outbound.ts";
import { PinnedAgent } from "../guard/pinned_agent.ts";
import type { HlsProgress } from "./hls_progress.ts";
import { HlsRelay } from "./hls_relay.ts";
import { MjpegRelay } from "./mjpeg_relay.ts";
import { prefetch, type Sink } from "./prefetch.ts";
import type { CountDatagrams } from "./rtp_datagrams.ts";
import { RtspTunnel } from "./rtsp_tunnel.ts";
import type { FetchContext, NamedTarget } from "./source_request.ts";

/** A source that was found to be admitted. */
export interface RelayedSource {
  readonly remote: RemoteSource;
  /**
   * The login of a named source, whose callers must not learn where it is; absent for a URL that the caller
   * gave.
   */
  readonly named?: NamedSourceLogin;
}

export interface NamedSourceLogin {
  /** The credentials; null for a source without a user name. */
  readonly credentials: SourceCredentials | null;
}

/** How a stream is opened. */
export interface RelayedStream {
  /** The Unix socket on which the relay listens for ffmpeg; null for a port of the machine's loopback. */
  readonly socket: string | null;
  /** What was read of an HLS source before; null for nothing. */
  readonly before: HlsProgress | null;
  /** Whether an HLS source ends that has had nothing new for a while. */
  readonly endsStill: boolean;
}

/** What ffmpeg reads one stream through. */
export interface SourceRelay extends AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  /** The first fault of the connection to the source; 422 `source_uri`. */
  readonly fault: Refusal | undefined;
  /** Why no more media comes from it now; undefined as long as some may. */
  readonly end: string | undefined;
  /** How far an HLS source is read; absent for others. */
  readonly progress?: HlsProgress;
  /** Resolves when what the relay knows now stands in `fault`, `end` and `progress`. */
  told?(): Promise<void>;
}

/** Opens relays, in this thread or in others. */
export interface SourceRelays extends AsyncDisposable {
  /**
   * Opens a stream. Errors: 422 `source_uri` for every fault of the source, and the reason of `signal`, which
   * closes the stream later, too.
   */
  openStream(source: RelayedSource, options: RelayedStream, signal: AbortSignal): Promise<SourceRelay>;
  /**
   * Passes the file to `sink`. Errors: 422 `source_uri` for every fault of the source, the reason of
   * `signal`, and those of `sink`.
   */
  fetchFile(source: RelayedSource, sink: Sink, signal: AbortSignal): Promise<void>;
}

export interface RelaySettings {
  /** SERVICE_ALLOW_INSECURE_TLS. */
  readonly allowInsecureTls: boolean;
  /** SERVICE_MEDIA_ALLOWED_NETWORKS. */
  readonly allowedNetworks: readonly IpNetwork[];
}

export interface RelaysHereOptions extends RelaySettings {
  readonly world: World;
  readonly outbound: TrustedOutbound;
  readonly countDatagrams: CountDatagrams;
}

/** Opens relays in the thread that asks. */
export class RelaysHere implements SourceRelays {
  readonly #options: RelaysHereOptions;
  readonly #agent: PinnedAgent;

  constructor(options: RelaysHereOptions) {
    const { allowInsecureTls, outbound: { roots, reroute } } = options;
    this.#options = options;
    this.#agent = new PinnedAgent({
      ...{ roots, allowInsecureTls, readsOddHeads: true, isPaced: true },
      ...(reroute && { reroute }),
    });
  }

  /** Opens a stream; `onChange` is called when `fault`, `end` or `progress` have changed. */
  async openStream(
    source: RelayedSource,
    { socket, before, endsStill }: RelayedStream,
    signal: AbortSignal,
    onChange: () => void = () => {},
  ): Promise<SourceRelay> {
    const { url, kind } = source.remote;
    const context = { ...this.#context(source, signal), onChange };
    if (kind === "hls") return await HlsRelay.open(url, context, { socket, before, endsStill });
    if (kind === "mjpeg") return await MjpegRelay.open(url, context, socket);
    const { countDatagrams } = this.#options;
    return await RtspTunnel.open(url, { ...context, countDatagrams }, socket);
  }

  async fetchFile(source: RelayedSource, sink: Sink, signal: AbortSignal): Promise<void> {
    await prefetch(source.remote, sink, this.#context(source, signal));
  }

  /** Closes the connections that were kept open. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#agent[Symbol.dispose]();
    return Promise.resolve();
  }

  #context({ remote, named }: RelayedSource, signal: AbortSignal): FetchContext {
    const { world, allowedNetworks, outbound: { resolve } } = this.#options;
    return {
      ...{ world, agent: this.#agent, allowedNetworks, signal },
      ...(resolve && { resolve }),
      ...(named && { named: this.#target(remote, named) }),
    };
  }

  #target({ url: { origin } }: RemoteSource, { credentials }: NamedSourceLogin): NamedTarget {
    if (credentials === null) return { login: null };
    const http = new Authorization(credentials, this.#options.world.randomBytes(8).toHex());
    return { login: { credentials, origin, http } };
  }
}
