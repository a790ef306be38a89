/** Requests with the largest effects: for every field the largest body, legal or not. large_requests.ts
 * measures them.
 */

import { longClipPath } from "./long_clip.ts";

const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const MIB = 2 ** 20;

export interface Attack {
  readonly name: string;
  /** Path of the request that is measured, legal or not; it may have `:id` for the run. */
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
  /** Request that is sent before, on the same run, and is not measured. */
  readonly before?: { readonly path: string; readonly body: string };
  /** Whether the request takes seconds, so that no second one is begun before it is answered. */
  readonly isSlow?: boolean;
}

/** Frames of the longest decode: as many as one ingest decodes. */
export const LONGEST_FRAMES = 500_000;
const LONGEST_DECODE = JSON.stringify({
  ...{ source_uri: longClipPath(LONGEST_FRAMES), max_frames: LONGEST_FRAMES },
  ...{ sampling_policy: "fixed", fixed_fps: 120 },
});

const frame = (index: number, flicker: number) =>
  `{"frame_index":${index},"pts_ms":${
    index * 40
  },"perceptual_hash":0,"luma_mean":0,"flicker_score":${flicker},"ghosting_score":0,"noise_variance_score":0}`;
const flickering = Array.from({ length: 4096 }, (_, index) => frame(index, index % 2)).join();
const name = '"'.repeat(256).replaceAll('"', '\\"');
const list = (item: string, bytes: number) =>
  `[${Array(Math.floor(bytes / (item.length + 1))).fill(item).join()}]`;
const program = (instructions: string) =>
  `{"isa_version":1,"program_id":"p","version":1,"instructions":${instructions}}`;
const FITTING = 131_000 * 3; // bytes of `{},` that just keep the limit of values

export const ATTACKS: readonly Attack[] = [
  {
    name: "frames: 4096 markers, long names",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","stream_id":"${name}","trace_id":"${name}","frames":[${flickering}]}`,
  },
  {
    name: "frames: too long a stream_id",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","stream_id":"${"x".repeat(400_000)}","frames":[${flickering}]}`,
  },
  {
    name: "frames: {} as often as admitted",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("{}", FITTING)}}`,
  },
  {
    name: "frames: {} 4096 times",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("{}", 4096 * 3)}}`,
  },
  {
    name: "frames: [] in 4 MiB",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("[]", 4 * MIB - 200)}}`,
  },
  {
    name: "body: a string of commas",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${",".repeat(4 * MIB - 200)}"}`,
  },
  {
    name: "body: quotes and backslashes",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${'\\",'.repeat(MIB)}"}`,
  },
  {
    name: "body: an integer of 4 MiB",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"x","segment_ms":${"9".repeat(4 * MIB - 200)}}`,
  },
  {
    name: "body: long integers",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"x","frames":${list("18446744073709551615", 65_000 * 21)}}`,
  },
  {
    name: "body: unknown fields",
    path: "/v1/runs",
    body: `{${Array.from({ length: 131_000 }, (_, index) => `"${index}":0`).join()}}`,
  },
  { name: "body: one long unknown field", path: "/v1/runs", body: `{"${"x".repeat(4 * MIB - 200)}":0}` },
  { name: "body: nested 2 million deep", path: "/v1/runs", body: "[".repeat(2 * MIB) + "]".repeat(2 * MIB) },
  { name: "trigger: instructions {}", path: "/v1/triggers/validate", body: program(list("{}", FITTING)) },
  {
    name: "trigger: samples",
    path: "/v1/triggers/evaluate",
    body: `{"program":${
      program(
        '[{"op":"load","signal":{"kind":"motion_score"}},{"op":"constant","value":0.5},{"op":"greater_than"},{"op":"jump_if_false","target":5},{"op":"emit","event_type":"e"},{"op":"halt"}]',
      )
    },"samples":${list('{"pts_ms":1,"motion_score":1}', 10_000 * 30)}}`,
  },
  {
    name: "trigger: observations {}",
    path: "/v1/triggers/evaluate",
    body: `{"program":${program('[{"op":"halt"}]')},"samples":[{"pts_ms":1,"observations":${
      list("{}", FITTING)
    }}]}`,
  },
  {
    name: "trigger: observations",
    path: "/v1/triggers/evaluate",
    body: `{"program":${
      program(
        '[{"op":"load","signal":{"kind":"dwell_ms","label":"a","zone":"b"}},{"op":"constant","value":0.5},{"op":"greater_than"},{"op":"jump_if_false","target":5},{"op":"emit","event_type":"e"},{"op":"halt"}]',
      )
    },"samples":[{"pts_ms":1,"observations":${
      list('{"signal":{"kind":"motion_score"},"value":1}', 3 * MIB)
    }}]}`,
  },
  {
    name: "trigger: source of 64 KiB",
    path: "/v1/triggers/compile",
    body: JSON.stringify({ source: "(".repeat(65_536) }),
  },
  {
    name: "trigger: source of operators",
    path: "/v1/triggers/compile",
    body: JSON.stringify({ source: "motion_score > 0.5 and ".repeat(2800) }),
  },
  { name: "infer: batch of {}", path: "/v1/infer/batch", body: `{"requests":${list("{}", FITTING)}}` },
  {
    name: "infer: batch of 256 prompts",
    path: "/v1/infer/batch",
    body: `{"requests":${
      list(`{"model":"${MODEL}","prompt":"${"x".repeat(16_000)}","timeout_ms":50}`, 256 * 16_080)
    }}`,
  },
  {
    name: "infer: schema of 64 KiB",
    path: "/v1/infer",
    body: `{"model":"${MODEL}","prompt":"x","output_schema":{"enum":${list("{}", 65_000)}}}`,
  },
  {
    name: "reason: schema of 1,000 parts",
    path: "/v1/runs/:id/reason",
    body: `{"model":"${MODEL}","source_uri":"x.mp4","output_schema":{"allOf":${
      list('{"type":"object"}', 990 * 18)
    }}}`,
  },
  {
    name: "reason: schema of patterns",
    path: "/v1/runs/:id/reason",
    body: `{"model":"${MODEL}","source_uri":"x.mp4","output_schema":{"allOf":${
      list('{"pattern":"(a{1,90}){1,9}"}', 900 * 29)
    }}}`,
  },
  {
    name: "ingest: source_uri of 4 MiB",
    path: "/v1/runs/:id/ingest",
    body: `{"source_uri":"${"a/../".repeat(800_000)}x.mp4"}`,
  },
  {
    name: "ingest: source_uri of 4 KiB",
    path: "/v1/runs/:id/ingest",
    body: `{"source_uri":"${"a/../".repeat(800)}x.mp4"}`,
  },
  {
    name: "webhook: event kinds",
    path: "/v1/runs/:id/webhooks",
    body: `{"url":"https://example.com/","event_kinds":${list('""', 4 * MIB - 200)}}`,
  },
  {
    name: "webhook: url of 4 MiB",
    path: "/v1/runs/:id/webhooks",
    body: `{"url":"https://${"a.".repeat(2 * MIB - 200)}com/"}`,
  },
  {
    name: "policy: schema, nested",
    path: "/v1/runs/:id/policies",
    body: `{"output_schema":${'{"not":'.repeat(5000)}{}${"}".repeat(5000)}}`,
  },
  { name: "search: query of 1 KiB", path: "/v1/search", body: JSON.stringify({ query: "ab".repeat(512) }) },
  {
    name: "feedback: 64 KiB of control characters",
    path: "/v1/runs/:id/feedback",
    body: `{"rating":1,"category":"c","feedback":"${"\\u0001".repeat(65_536)}"}`,
  },
  {
    name: "query: kind of 4 MiB",
    path: "/v1/query",
    body: `{"run_id":":id","kind":"${"k".repeat(4 * MIB - 200)}"}`,
  },
  {
    name: "header: x-tenant-id of 60 KB",
    path: "/v1/runs",
    body: "{}",
    headers: { "x-tenant-id": "t".repeat(60_000) },
  },
  {
    name: "whip: an offer of 64 KiB",
    path: "/v1/stream/whip",
    body: largestOffer(),
    headers: { "content-type": "application/sdp" },
  },
  {
    name: "ingest: 500,000 frames",
    path: "/v1/runs/:id/ingest",
    body: LONGEST_DECODE,
    isSlow: true,
  },
  {
    name: "analyze: 500,000 stored frames",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}"}`,
    before: { path: "/v1/runs/:id/ingest", body: LONGEST_DECODE },
    isSlow: true,
  },
];

/** The largest offer: as many lines and formats as one may have. */
function largestOffer(): string {
  const formats = Array.from({ length: 60 }, (_, index) => 64 + index);
  const lines = [
    ...["v=0", "o=- 4611732 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0"],
    `m=video 9 UDP/TLS/RTP/SAVPF ${formats.join(" ")}`,
    ...["c=IN IP4 0.0.0.0", "a=ice-ufrag:abcd", "a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa"],
    `a=fingerprint:sha-256 ${Array(32).fill("AB").join(":")}`,
    ...["a=setup:actpass", "a=mid:0", "a=sendonly", "a=rtcp-mux"],
    ...formats.map((format) => `a=rtpmap:${format} VP8/90000`),
    ...formats.flatMap((format) =>
      ["nack", "nack pli", "ccm fir"].map((kind) => `a=rtcp-fb:${format} ${kind}`)
    ),
    ...formats.map((format) => `a=fmtp:${format} max-fs=12288;max-fr=60`),
  ];
  const left = 1_990 - lines.length;
  const bytes = 65_400 - lines.join("\r\n").length;
  const padding = "x".repeat(Math.floor(bytes / left) - 6);
  return [...lines, ...Array(left).fill(`a=x-${padding}`), ""].join("\r\n");
}
