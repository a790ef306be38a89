/** Opens what remote sources are read through: Workers, so that no server of a source keeps the HTTP thread
 * busy.
 */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import type { TrustedOutbound } from "../remote/guard/outbound.ts";
import { RelayWorkers } from "../remote/sources/relay_workers.ts";
import { RelaysHere, type SourceRelays } from "../remote/sources/relays.ts";
import type { CountDatagrams } from "../remote/sources/rtp_datagrams.ts";

export interface RelayOptions {
  readonly config: Config;
  readonly world: World;
  readonly metrics: Metrics;
  readonly socketDir: string;
  /** The outbound connections of a test, whose replacements stay in its thread; null in production. */
  readonly outbound: TrustedOutbound | null;
}

export function openRelays({ config, world, metrics, socketDir, outbound }: RelayOptions): SourceRelays {
  const { allowInsecureTls, mediaAllowedNetworks: allowedNetworks } = config;
  const countDatagrams: CountDatagrams = (outcome, datagrams) =>
    metrics.add("service_rtsp_datagrams_total", { outcome }, datagrams);
  const options = { allowInsecureTls, allowedNetworks, world, countDatagrams };
  if (outbound !== null) return new RelaysHere({ ...options, outbound });
  const workersMax = Math.min(RELAY_WORKERS_MAX, navigator.hardwareConcurrency);
  return new RelayWorkers({ ...options, socketDir, workersMax });
}

/** The most relay Workers. Each takes the memory of a runtime, and reads some hundred Mbit/s. */
const RELAY_WORKERS_MAX = 4;
