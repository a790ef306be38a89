/** Always-on cameras that send HLS from loopback, and a service that watches them. */

import { startReason } from "../models/reason.ts";

/** A source of the file of sources, recorded and with clips. */
export function hlsSource(name: string, port: number): string {
  return `[[sources]]\nname = "${name}"\nuri = "http://camera.test:${port}/list.m3u8"\nprincipals = ["*"]\nlive = true\n` +
    `recording = { hours = 1 }\nrecord = { pre_roll_ms = 500, post_roll_ms = 300, on = ["keyframe"] }\n`;
}

export function watchHls(sources: readonly string[]) {
  return startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_INSECURE_HTTP: "true",
    SERVICE_ALLOW_REMOTE_HLS: "true",
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile: sources.join("\n"),
  });
}
