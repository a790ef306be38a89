/** Tries the server's decoder, models and audio sidecar end to end, with a made film on runs that are
 * deleted, as it is.
 */

import { basename, join } from "node:path";
import { type Client, DEFAULT_MODEL } from "../../../client/mod.ts";
import { failureOf } from "../../failure.ts";
import type { Session } from "../../session.ts";
import { failure, type Finding, ok, unseen, warning } from "./finding.ts";

/** A doctor that was killed leaves it; the next one replaces it, and removes it. */
const NAME = "service-cli-doctor.mp4";
const SECONDS = 2;
const FPS = 5;
const FRAMES = SECONDS * FPS;
const TIMEOUT_MS = 60_000;
const MODEL_TIMEOUT_MS = 30_000;

export interface MediaWishes {
  readonly ffmpeg: string;
  /** The model to ask; none where undefined. */
  readonly model: string | undefined;
}

export async function tryMedia(
  session: Session,
  { ffmpeg, model }: MediaWishes,
): Promise<readonly Finding[]> {
  const client = await session.client({ timeoutMs: TIMEOUT_MS, maxRetries: 0 });
  const { signal, settings } = session;
  const tryOn = async (look: (run_id: string) => Promise<Finding>, check: string) => {
    let run_id: string | undefined;
    try {
      run_id = (await client.createRun({}, { signal })).run_id;
      return await look(run_id);
    } catch (error) {
      signal.throwIfAborted();
      const { message, hint } = failureOf(error, settings.url);
      return failure(check, message, hint ?? "the server's log says more under the request id");
    } finally {
      // One at a time, so that it needs one place among the runs of its caller that may be active.
      if (run_id !== undefined) await client.deleteRun(run_id).catch(() => {});
    }
  };
  let source_uri: string | undefined;
  try {
    source_uri = await uploadFilm(client, ffmpeg, signal);
    const source = { source_uri };
    const decoded = await tryOn(async (run_id) => {
      const { decoded_frames } = await client.ingestRun(run_id, source, { signal });
      if (decoded_frames !== FRAMES) throw new Error(`${decoded_frames} of ${FRAMES} frames were decoded`);
      return ok("decoding", `the server decoded a film in H.264 with all of its ${FRAMES} frames`);
    }, "decoding");
    if (decoded.verdict === "failure") return [decoded];
    const analysis = {
      ...source,
      fixed_fps: FPS,
      sampling_policy: "fixed",
      include_frame_metadata: false,
    };
    const findings = [decoded];
    if (model !== undefined) {
      const asked = { ...analysis, model };
      findings.push(await tryOn((run_id) => tryModel(session, client, run_id, asked), `model ${model}`));
    }
    const heard = { ...analysis, model: model ?? DEFAULT_MODEL };
    findings.push(await tryOn((run_id) => trySidecar(session, client, run_id, heard), "audio sidecar"));
    return findings;
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint } = failureOf(error, settings.url);
    return [failure("decoding", message, hint ?? "the server's log says more under the request id")];
  } finally {
    if (source_uri !== undefined) await client.deleteFile(basename(source_uri)).catch(() => {});
  }
}

type Analysis = Parameters<Client["reason"]>[1];

async function tryModel(
  { signal, settings }: Session,
  client: Client,
  run_id: string,
  analysis: Analysis,
): Promise<Finding> {
  const check = `model ${analysis.model}`;
  const advice = "check the backend and what the server is told of it; the server's log says more";
  try {
    const startMs = performance.now();
    await client.reason(run_id, { ...analysis, chunk_size: FRAMES, semantic_timeout_ms: MODEL_TIMEOUT_MS }, {
      signal,
    });
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    const { matches } = await client.query({ run_id, kind: "semantic_chunk_inferred" }, { signal });
    const { semantic_error: fault, semantic_error_text: why, provider } = matches[0]?.payload ?? {};
    if (matches.length === 0) return failure(check, "it was not asked", advice);
    return typeof fault === "string" && fault !== ""
      ? failure(check, `asked about a picture, it did not answer: ${why ?? fault}`, advice)
      : ok(check, `${provider} described a picture in ${seconds} s`);
  } catch (error) {
    signal.throwIfAborted();
    return failure(check, failureOf(error, settings.url).message, advice);
  }
}

async function trySidecar(
  { signal, settings }: Session,
  client: Client,
  run_id: string,
  analysis: Analysis,
): Promise<Finding> {
  const check = "audio sidecar";
  const media = { mode: "audio_video" as const, window_ms: SECONDS * 1000, persist_evidence: false };
  try {
    await client.reason(run_id, {
      ...analysis,
      media,
      local_audio: { speech_engine: "none" },
      semantic_inference: false,
    }, { signal });
    const { matches } = await client.query({ run_id, kind: "semantic_chunk_inferred" }, { signal });
    const { semantic_error: fault } = matches[0]?.payload ?? {};
    return typeof fault === "string" && fault !== ""
      ? failure(
        check,
        `it did not answer: ${fault}`,
        "start it again; SERVICE_AUDIO_SIDECAR_ADDR names its address",
      )
      : ok(check, "it listened to two seconds of sound");
  } catch (error) {
    signal.throwIfAborted();
    const { message } = failureOf(error, settings.url);
    return message.includes("audio_sidecar_unavailable")
      ? unseen(check, "the server has none, which only --local-audio needs")
      : warning(check, message, "only --local-audio needs it");
  }
}

/** Moving bars and a tone. */
async function uploadFilm(client: Client, ffmpeg: string, signal: AbortSignal): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "service-cli-" });
  try {
    const path = join(folder, NAME);
    const { success, stderr } = await new Deno.Command(ffmpeg, {
      args: [
        ...["-v", "error", "-nostdin", "-f", "lavfi", "-i", `testsrc2=s=320x240:r=${FPS}:d=${SECONDS}`],
        ...["-f", "lavfi", "-i", `sine=frequency=440:duration=${SECONDS}`, "-pix_fmt", "yuv420p"],
        ...["-c:v", "libx264", "-c:a", "aac", path],
      ],
      stdin: "null",
      signal,
    }).output();
    if (!success) {
      throw new Error(`ffmpeg here cannot make a film: ${new TextDecoder().decode(stderr).slice(0, 300)}`);
    }
    const file = new File([await Deno.readFile(path)], NAME);
    return (await client.uploadFile(file, undefined, { signal })).file_path;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
