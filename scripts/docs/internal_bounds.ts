/** TABLE of bounds that are constants of one module: where each one stands, and what it bounds. The value is
 * read there.
 */

import { table } from "./markdown.ts";
import { valueText } from "./values.ts";

/** File below src/, the name of the constant, and what it bounds. */
const BOUNDS: readonly (readonly [string, string, string])[] = [
  ["http/requests/body.ts", "FAULTS_MAX", "Faults that one 422 answer lists"],
  ["http/requests/upload_form.ts", "BOUNDARY_CHARACTERS_MAX", "Characters of the boundary of a form"],
  [
    "model/reason/json_object.ts",
    "MAX_JSON_DEPTH",
    "Levels of an `output_schema`, and of JSON in a model's answer",
  ],
  [
    "model/reason/answer.ts",
    "ANSWER_CHARACTERS_MAX",
    "Characters of a model's answer that are searched for JSON",
  ],
  ["flow/reason/output_schemas.ts", "WORKERS_MAX", "Workers that compile and check with an `output_schema`"],
  ["flow/reason/output_schemas.ts", "WAITERS_MAX", "Callers that may wait for one of them; one more is 503"],
  ["flow/reason/output_schemas.ts", "IDLE_MS", "One of them without work; then it ends"],
  ["model/reason/answer.ts", "TEXT_MAX", "Characters of a summary or description; longer ones are cut"],
  ["model/reason/answer.ts", "LABEL_MAX", "Characters of a label; longer ones are cut"],
  ["model/reason/moments.ts", "TEXT_MAX", "Characters of a text of a moment; longer ones are cut"],
  [
    "remote/guard/pinned_request.ts",
    "DRAINED_CHUNKS_MAX",
    "Chunks of an answer that are read for the sake of its connection alone",
  ],
  ["remote/s3_storage.ts", "PAGES_MAX", "Pages of one listing of the S3 storage of backups"],
  ["remote/s3_storage.ts", "TOKEN_CHARACTERS_MAX", "Characters of the token that names the next page"],
  ["remote/models/model_endpoint.ts", "ANSWER_BYTES_MAX", "A backend's answer; a longer one is invalid"],
  ["remote/models/model_endpoint.ts", "LIST_BYTES_MAX", "A backend's list of models; a longer one is none"],
  ["remote/models/model_endpoint.ts", "CONNECT_MS", "Connecting to a backend"],
  ["remote/models/circuit_breaker.ts", "FAILURES_MAX", "Failures in a row after which a backend is left out"],
  ["remote/models/circuit_breaker.ts", "OPEN_MS_FIRST", "How long it is left out first; doubles each time"],
  ["remote/models/circuit_breaker.ts", "OPEN_MS_MAX", "How long it is left out at most"],
  ["flow/sources/sources.ts", "FETCHES_MAX", "Remote files that are fetched at once"],
  ["flow/sources/sources.ts", "WAITERS_MAX", "Callers that may wait for a fetch; one more is 503"],
  ["remote/sources/hls_relay.ts", "PLAYLIST_BYTES_MAX", "An HLS playlist"],
  ["model/sources/hls_playlist.ts", "LINES_MAX", "Lines of an HLS playlist"],
  ["model/sources/hls_playlist.ts", "ADDRESSES_MAX", "Addresses in an HLS playlist"],
  ["model/sources/hls_playlist.ts", "URI_CHARACTERS_MAX", "Characters of one of them, or of a tag"],
  ["model/sources/hls_playlist.ts", "ADDRESS_CHARACTERS_MAX", "Characters of all of them, made absolute"],
  ["model/sources/hls_part.ts", "TAG_BYTES_MAX", "An ID3 tag before the sound of an HLS part"],
  [
    "remote/sources/hls_relay.ts",
    "STILL_MS",
    "An HLS playlist without end that has nothing new, until it has ended; not of a watched one",
  ],
  ["remote/sources/hls_relay.ts", "STILL_PARTS", "The same in parts of the longest length, if that is more"],
  ["remote/sources/hls_relay.ts", "PART_TIMEOUT_MS", "One part of an HLS source"],
  ["remote/sources/rtsp_tunnel.ts", "CONNECT_TIMEOUT_MS", "Connecting to an RTSP server"],
  ["remote/sources/rtsp_replies.ts", "HEAD_BYTES_MAX", "The head of an answer of an RTSP server"],
  ["remote/sources/rtsp_replies.ts", "BODY_BYTES_MAX", "The body of one, such as a description"],
  [
    "remote/sources/rtsp_replies.ts",
    "NOISE_MESSAGES_MAX",
    "What is left out of a camera in 10 s, as short frames; with more it is lost",
  ],
  ["remote/sources/rtsp_replies.ts", "NOISE_BYTES_MAX", "Bytes of it in 10 s"],
  [
    "remote/sources/rtsp_replies.ts",
    "EMPTY_MS",
    "Frames without media, and none with it; then the camera is lost",
  ],
  [
    "remote/sources/rtsp_connection.ts",
    "TRACKS_MAX",
    "Tracks of one camera over UDP; with more it is refused",
  ],
  [
    "remote/sources/rtsp_connection.ts",
    "FIRST_MEDIA_MS",
    "Waiting for the first packet of a camera over UDP",
  ],
  [
    "remote/sources/rtp_datagrams.ts",
    "GAP_WAIT_MS",
    "A packet of a camera over UDP that waits for one before it",
  ],
  ["media/files/decoder.ts", "STREAMS_PER_DECODE", "Endless sources at once, for each processor"],
  ["media/files/decoder.ts", "WAITERS_MAX", "Callers that may wait for a decode; one more is 503"],
  ["media/files/probed_files.ts", "FILES_MAX", "Files whose content is known without another probe"],
  ["media/files/probed_files.ts", "KEPT_MS", "How long it is known, if the file does not change"],
  ["media/files/worker_pool.ts", "IDLE_MS", "A decode Worker without work; then it ends"],
  ["live/worker_pool.ts", "IDLE_MS", "A live Worker without a session; then it ends"],
  ["media/files/decode_bounds.ts", "DEADLINE_MAX_MS", "Decoding one source"],
  ["media/files/decode_bounds.ts", "ENDLESS_DEADLINE_MAX_MS", "Reading a source without an end"],
  ["media/files/frame_stream.ts", "STALL_MS", "A decoder of `reason` that gives no frame"],
  ["flow/events/follower.ts", "READ_BYTES_MAX", "What is read of the log for an event stream at once"],
  [
    "flow/events/follower.ts",
    "READ_BYTES_OF_PRINCIPAL",
    "The same of all event streams of a principal, each an even part",
  ],
  ["http/routes/sse.ts", "PIECE_BYTES", "What an event stream gives the runtime at once"],
  [
    "http/answers/untaken_answers.ts",
    "LOOK_MS",
    "From one look at who has taken what of its event stream to the next",
  ],
  [
    "model/sidecars/audio_protocol.ts",
    "LEVELS_MAX",
    "Lists and maps inside each other in the metadata of the audio sidecar",
  ],
  ["flow/events/feed.ts", "QUEUE_BYTES", "What waits for one event-stream client, or one piece of any size"],
  ["flow/policies/revisions.ts", "BOOKS_KEPT", "Runs whose policies are kept in memory"],
  ["model/live/candidate.ts", "CANDIDATES_MAX", "ICE candidates that are taken of one body"],
  ["rtc/peer.ts", "CONNECT_MS", "From an answer to a connection"],
  ["rtc/peer.ts", "SILENCE_MS", "A connected publisher from which nothing arrives"],
  ["flow/live/signalling.ts", "ANSWER_MS", "Answering an offer, or an ICE restart"],
  ["flow/live/stages/session_stages.ts", "DRAIN_MS", "Finishing what was reported when a session ends"],
  ["flow/live/ending.ts", "JOIN_MS", "Releasing a session"],
  [
    "flow/live/reconnect.ts",
    "WAIT_SHORTEST_MS",
    "Shortest wait before a pulled source is asked again; a quarter of the time for which it is lost",
  ],
  ["flow/live/reconnect.ts", "WAIT_LONGEST_MS", "Longest such wait"],
  [
    "media/live/pulled_decoder.ts",
    "SILENCE_MS",
    "A pulled source that gives no frame; then it counts as lost",
  ],
  ["store/timeline/timeline.ts", "SEGMENT_BYTES", "A segment of the log; the next one begins then"],
  ["process/service_process.ts", "CLOSE_DEADLINE_MS", "A graceful end of the process"],
];

export function internalBoundsTable(): string {
  return table(
    ["Subject", "Bound", "Constant"],
    BOUNDS.map((
      [file, name, subject],
    ) => [subject, valueText(name, valueOf(file, name)), `\`${name}\`, src/${file}`]),
  );
}

/** The number that `const NAME = …;` gives; it may be a product or a power. */
function valueOf(file: string, name: string): number {
  const text = Deno.readTextFileSync(new URL(`../../src/${file}`, import.meta.url));
  const expression = new RegExp(`^(?:export )?const ${name} = ([\\d_.* ]+);`, "m").exec(text)?.[1];
  if (expression === undefined) {
    throw new Error(`src/${file} has no constant ${name}, which scripts/docs/internal_bounds.ts names`);
  }
  return expression.replaceAll("_", "").split(/ \* /).reduce((product, factor) => {
    const [base, power = "1"] = factor.split(" ** ");
    return product * Number(base) ** Number(power);
  }, 1);
}
