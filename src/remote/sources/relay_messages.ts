/** What the thread of the service and a relay Worker say to each other. */

import type { Level } from "../../base/log.ts";
import type { RemoteSource } from "../../model/sources/remote_source.ts";
import type { PlaylistPart } from "./hls_progress.ts";
import type { NamedSourceLogin, RelayedStream, RelaySettings } from "./relays.ts";
import type { DatagramOutcome } from "./rtp_datagrams.ts";

export type RelayOrder =
  /** The first order, before all others. */
  | { readonly kind: "start"; readonly settings: RelaySettings }
  | SourceOrder & { readonly kind: "open"; readonly options: RelayedStreamOrder }
  | SourceOrder & { readonly kind: "fetch" }
  /** The bytes that came last were taken, and their memory is given back: more may come in it. */
  | { readonly kind: "taken"; readonly id: number; readonly room: ArrayBuffer }
  /** Asks for `said`, a report. */
  | { readonly kind: "ask"; readonly id: number }
  /** Closes a source. The answer is `closed`, also where the source is not open any more. */
  | { readonly kind: "close"; readonly id: number };

/** An order about a source that gets this number. */
interface SourceOrder {
  readonly id: number;
  readonly source: RemoteSource["kind"];
  readonly url: string;
  readonly named: NamedSourceLogin | null;
}

interface RelayedStreamOrder extends Omit<RelayedStream, "before"> {
  readonly before: readonly PlaylistPart[] | null;
}

/** What a relay knows of its source; the fault is one of `source_uri`. */
export interface RelaySaid {
  readonly fault: string | null;
  readonly end: string | null;
  /** The last parts that were read, one of each playlist. */
  readonly parts: readonly PlaylistPart[];
}

export type RelayReport =
  | { readonly kind: "ready" }
  | { readonly kind: "opened"; readonly id: number; readonly url: string; readonly said: RelaySaid }
  | { readonly kind: "said"; readonly id: number; readonly said: RelaySaid; readonly isAnswer: boolean }
  | { readonly kind: "bytes"; readonly id: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: "fetched"; readonly id: number }
  /** The source was refused with 422 `source_uri`. */
  | { readonly kind: "refused"; readonly id: number; readonly reason: string }
  /** A flaw of the service ended the source. */
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  | { readonly kind: "closed"; readonly id: number }
  | { readonly kind: "datagrams"; readonly outcome: DatagramOutcome; readonly datagrams: number }
  | {
    readonly kind: "log";
    readonly level: Level;
    readonly message: string;
    readonly fields: Record<string, unknown>;
  };
