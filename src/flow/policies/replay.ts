/** Replays a policy revision: evaluates its restricted zone on stored events, or on the run's media decoded
 * again.
 */

import { refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { DecodedSignals, Decoder } from "../../media/files/decoder.ts";
import type { GateKernel } from "../../media/kernels/gate_kernel.ts";
import { ZoneKernel } from "../../media/kernels/zone_kernel.ts";
import type { ReplayPolicyBody } from "../../model/api/policies.ts";
import { event, type PayloadOf } from "../../model/events/event_table.ts";
import { COORDINATE_SCHEMA } from "../../model/frames/coordinates.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import { payloadFields } from "../../model/events/payload_json.ts";
import { planSampling, type SamplingPlan, type SamplingPolicy } from "../../model/frames/sampling.ts";
import type { GateThresholds } from "../../model/frames/signals.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { explainedFailure, ownedRun } from "../runs/ownership.ts";
import type { RunWork } from "../runs/run_work.ts";
import type { Sources } from "../sources/sources.ts";
import type { PolicyRevisions } from "./revisions.ts";

/** See docs/triggers-policies.md#policy-replay. */
export type ReplayEvaluation = PayloadOf<"policy_replay_evaluated">;

export interface PolicyReplayOptions {
  readonly timeline: Timeline;
  readonly revisions: PolicyRevisions;
  readonly work: RunWork;
  readonly decoder: Decoder;
  readonly sources: Sources;
  readonly gate: GateKernel;
  readonly thresholds: GateThresholds;
}

/** The events that a replay over stored events evaluates. */
const CANDIDATES: ReadonlySet<string> = new Set(["restricted_zone_activity_entered"]);

export class PolicyReplay {
  readonly #options: PolicyReplayOptions;

  constructor(options: PolicyReplayOptions) {
    this.#options = options;
  }

  /**
   * Evaluates the revision and appends the result; the evaluation's id is the sequence number of that event.
   * Errors: 422 and 404 on the run, 404 on `revision`, 422 on `to_seq` and `source`, and on `source_uri` when
   * the run's media is gone.
   */
  async run(
    caller: Caller,
    runId: string,
    revision: number,
    body: ReplayPolicyBody,
  ): Promise<{ evaluationId: number; evaluation: ReplayEvaluation }> {
    const { timeline, revisions } = this.#options;
    const { parameters } = revisions.content(revisions.revision(caller, runId, revision));
    const zone = parameters.restricted_zone ?? null;
    const source = checkedSource(body);
    const evaluation = source === "signals"
      ? await this.#overSignals(caller, runId, revision, zone)
      : await this.#overEvents(runId, revision, zone, body);
    const [committed] = timeline.commit((view) => {
      ownedRun(view, caller, runId);
      return [event("policy_replay_evaluated", runId, evaluation)];
    });
    return { evaluationId: committed!.seq, evaluation };
  }

  /** Compares the stored candidates with the revision's threshold, whichever policy wrote them. */
  async #overEvents(
    runId: string,
    revision: number,
    zone: RestrictedZone | null,
    body: ReplayPolicyBody,
  ): Promise<ReplayEvaluation> {
    const fromSeq = body.from_seq ?? 0;
    const toSeq = body.to_seq ?? null;
    const threshold = zone?.enter_motion_score ?? null;
    const counts = { candidate_events: 0, accepted_events: 0, rejected_events: 0, events_without_score: 0 };
    const range = { fromSeq, ...(toSeq !== null && { toSeq }) };
    for await (const batch of this.#options.timeline.readAhead(runId, { kinds: CANDIDATES, ...range })) {
      for (const { payload } of batch) {
        const score = scoreOf(payload);
        counts.candidate_events++;
        if (score === null || threshold === null) counts.events_without_score++;
        else if (score >= threshold) counts.accepted_events++;
        else counts.rejected_events++;
      }
    }
    return {
      revision,
      source: "local_wal",
      comparison: "candidate score >= enter_motion_score",
      from_seq: fromSeq,
      to_seq: toSeq,
      ...counts,
      threshold,
      limitation:
        "Only events that the original pipeline emitted are candidates: what it missed cannot be measured.",
    };
  }

  /**
   * Runs the state machine of the zone over the run's media, decoded again, cropped to the zone and sampled
   * as in its latest ingest. Scores motion like the live path. See docs/live/events.md#restricted-zone.
   */
  async #overSignals(
    caller: Caller,
    runId: string,
    revision: number,
    zone: RestrictedZone | null,
  ): Promise<ReplayEvaluation> {
    const { timeline, work, gate, thresholds } = this.#options;
    const run = ownedRun(timeline.view, caller, runId);
    if (!zone) throw refuse.invalid("source", "signals needs a revision with a restricted_zone");
    const ingested = this.#ingested(run.latestFramesDecodedSeq);
    const candidates = await this.#count(runId);

    using handle = work.begin(runId, caller.signal);
    const { decoded, plan } = await this.#decoded(caller, ingested, zone, handle.signal).catch((error) => {
      throw explainedFailure(error, handle.signal, {
        view: timeline.view,
        caller,
        runId,
        action: "replay",
        // Not the usual error, as a terminal run may be replayed: the caller only has to repeat the request.
        whenTerminal: (state) =>
          refuse.conflict("run_id", `Cannot finish the replay as the run is ${state} now: ask again`),
      });
    });
    const { signals } = decoded;
    const frameIndex = Float64Array.from({ length: signals.count }, (_, index) => index);
    const { motion } = gate.run(signals, frameIndex, thresholds, LIMITS.analyze.windowSizeDefault);
    await yieldToEventLoop();
    const machine = await ZoneKernel.load();
    const found = machine.run({
      enterScore: zone.enter_motion_score,
      exitScore: zone.exit_motion_score,
      enterAfterFrames: zone.enter_after_frames,
      exitAfterFrames: zone.exit_after_frames,
    }, motion);
    const timeAt = (frame: number) => Math.round(signals.ptsMs[frame]!);
    return {
      revision,
      source: "signals",
      comparison: "restricted zone state machine over the frames of the run's media",
      from_seq: 0,
      to_seq: null,
      candidate_events: candidates,
      accepted_events: found.length,
      rejected_events: 0,
      events_without_score: 0,
      threshold: zone.enter_motion_score,
      source_uri: ingested.source_uri,
      sample_fps: plan.sampleFps,
      frames: signals.count,
      first_pts_ms: timeAt(0),
      last_pts_ms: timeAt(signals.count - 1),
      coordinate_schema: COORDINATE_SCHEMA,
      coordinates: decoded.coordinates,
      intervals_total: found.length,
      intervals: found.slice(0, LIMITS.policy.replayIntervalsMax).map(({ enteredAt, leftAt }) => ({
        entered_frame: enteredAt,
        entered_pts_ms: timeAt(enteredAt),
        left_frame: leftAt,
        left_pts_ms: leftAt === null ? null : timeAt(leftAt),
        peak_motion_score: peak(motion, enteredAt, leftAt ?? signals.count),
      })),
      limitation: "Sampled as the run's latest ingest was; a live session sees every frame that reaches it.",
    };
  }

  async #decoded(
    caller: Caller,
    ingested: Ingested,
    zone: RestrictedZone,
    signal: AbortSignal,
  ): Promise<{ decoded: DecodedSignals; plan: SamplingPlan }> {
    const { decoder, sources } = this.#options;
    const { principalKey } = caller;
    await using source = await sources.open(ingested.source_uri, principalKey, signal);
    const info = await source.explained(decoder.probe(source.input, signal, {
      ...{ principalKey, videoStream: ingested.video_stream },
    }));
    const asIngested = {
      policy: ingested.sampling_policy,
      fixedFps: ingested.sample_fps,
      sampleFps: ingested.sample_fps,
    };
    const plan = planSampling(asIngested, info.video?.averageFps ?? null, "ingest");
    const decoded = await source.explained(decoder.decodeSignals({
      principalKey,
      input: source.input,
      info,
      plan,
      maxFrames: ingested.decoded_frames,
      crop: zone.region,
      signal,
    }));
    signal.throwIfAborted();
    return { decoded, plan };
  }

  async #count(runId: string): Promise<number> {
    let candidates = 0;
    for await (const batch of this.#options.timeline.readAhead(runId, { kinds: CANDIDATES })) {
      candidates += batch.length;
    }
    return candidates;
  }

  #ingested(seq: number): Ingested {
    const stored = seq > 0 ? this.#options.timeline.readOne(seq) : undefined;
    const fields: Partial<Ingested> | undefined = stored && payloadFields(stored.payload);
    if (!fields) {
      throw refuse.invalid("source", "signals needs media that was ingested into the run, which has none");
    }
    return fields as Ingested;
  }
}

/** The fields of a `frames_decoded` event that a replay needs to decode the source in the same way again. */
interface Ingested {
  readonly source_uri: string;
  readonly sampling_policy: SamplingPolicy;
  readonly sample_fps: number;
  readonly decoded_frames: number;
  readonly video_stream?: number;
}

function checkedSource(body: ReplayPolicyBody): "local_wal" | "signals" {
  const rules = new FieldRules();
  const source = body.source ?? "local_wal";
  if (source !== "local_wal" && source !== "signals") {
    rules.fault("source", `must be local_wal or signals: got ${quoted(source)}`);
  }
  const { from_seq: from, to_seq: to } = body;
  if (to != null && to < (from ?? 0)) rules.fault("to_seq", `must be at least from_seq, ${from}: got ${to}`);
  if (source === "signals") {
    if (from != null) rules.fault("from_seq", "is for source local_wal, signals takes all of the media");
    if (to != null) rules.fault("to_seq", "is for source local_wal, signals takes all of the media");
  }
  rules.check();
  return source as "local_wal" | "signals";
}

/** The candidate's `confidence`, else the score of its trigger. */
function scoreOf(payload: string): number | null {
  const fields = payloadFields(payload);
  if (typeof fields?.confidence === "number") return fields.confidence;
  const trigger = (fields?.assertion as { trigger?: { score?: unknown } } | null | undefined)?.trigger;
  return typeof trigger?.score === "number" ? trigger.score : null;
}

function peak(scores: Float64Array, from: number, to: number): number {
  let highest = 0;
  for (let index = from; index < to; index++) highest = Math.max(highest, scores[index]!);
  return highest;
}
