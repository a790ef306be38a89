/** Remote media sources: which `source_uri` names one, and which ones the operator admits. See
 * docs/api/ingest.md#sources.
 */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";

/** The settings of the operator for media sources; all off by default. */
export interface RemoteSourceToggles {
  readonly allowInsecureHttp: boolean;
  readonly allowUnencryptedRtsp: boolean;
  readonly allowRemoteHls: boolean;
}

/** A remote source. A `file` is fetched before it is decoded; others are decoded while they come. */
export interface RemoteSource {
  readonly kind: "file" | "hls" | "rtsp" | "mjpeg";
  /** The address: http, https, rtsp or rtsps; the host is not checked yet. */
  readonly url: URL;
}

/**
 * Reads a `source_uri`; null for a local path or a file URL. `hls:` becomes https, or http where insecure
 * HTTP is admitted. Where the source is watched live, an http or https URL is that of an endless series of
 * JPEGs. Refuses (422 `source_uri`) other schemes, those that the settings do not admit, a text that is no
 * URL, and one with a user name or password.
 */
export function remoteSource(
  sourceUri: string,
  toggles: RemoteSourceToggles,
  { isWatched = false }: { readonly isWatched?: boolean } = {},
): RemoteSource | null {
  const bytes = utf8Length(sourceUri);
  if (bytes > LIMITS.ingest.sourceUriBytesMax) {
    throw sourceFault(`must be at most ${LIMITS.ingest.sourceUriBytesMax} bytes: got ${bytes}`);
  }
  const uri = sourceUri.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(uri)?.[1]?.toLowerCase();
  if (scheme === undefined || scheme === "file") return null;
  if (!SCHEMES.includes(scheme)) throw sourceFault(`unsupported scheme ${scheme.slice(0, 32)}`);
  // deno-lint-ignore no-control-regex -- of which the parser would leave some out
  if (/[\x00-\x1f\x7f]/.test(uri)) throw sourceFault("must not contain control characters");
  const web = toggles.allowInsecureHttp ? "http" : "https";
  const url = URL.parse(scheme === "hls" ? uri.replace(/^hls/i, web) : uri);
  if (!url) throw sourceFault("is not a valid URL");
  if (url.hostname === "") throw sourceFault("must name a valid host");
  if (url.username !== "" || url.password !== "") {
    throw sourceFault(
      "must not contain a user name or password: whoever runs the service keeps them in the file of " +
        "SERVICE_SOURCES_CONFIG, and callers name the source as source:<name>",
    );
  }
  url.hash = "";
  if (scheme === "http" && !toggles.allowInsecureHttp) {
    throw notAdmitted("http", "SERVICE_ALLOW_INSECURE_HTTP");
  }
  if (scheme === "rtsp" && !toggles.allowUnencryptedRtsp) {
    throw notAdmitted("rtsp", "SERVICE_ALLOW_UNENCRYPTED_RTSP");
  }
  if (scheme.startsWith("rtsp")) return { kind: "rtsp", url };
  if (scheme !== "hls" && !/\.m3u8$/i.test(url.pathname)) {
    return { kind: isWatched ? "mjpeg" : "file", url };
  }
  if (!toggles.allowRemoteHls) throw notAdmitted("remote HLS", "SERVICE_ALLOW_REMOTE_HLS");
  return { kind: "hls", url };
}

/** The refusal of a source, for any reason. */
export function sourceFault(reason: string) {
  return refuse.invalid("source_uri", reason);
}

const SCHEMES = ["http", "https", "hls", "rtsp", "rtsps"];

function notAdmitted(what: string, toggle: string) {
  return sourceFault(`${what} sources are not admitted by this service; ${toggle} would admit them`);
}
