/** Which always-on cameras are armed: follows their schedules, takes calls, and tells every change. */

import type { Metrics } from "../../contract/metrics.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { ArmBody, ArmedLook } from "../../model/api/sources.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  armedAt,
  type ArmedByCall,
  type ArmedState,
  calledAt,
  isInForce,
} from "../../model/sources/arming.ts";
import { type AlwaysOnSource, isAlwaysOn } from "../../model/sources/source_file.ts";
import type { ArmedCalls } from "../../store/armed_calls.ts";
import type { Caller } from "../caller.ts";
import type { NamedSources } from "./named_sources.ts";

/** A camera was armed or disarmed. */
export interface ArmedChange {
  readonly isArmed: boolean;
  /** `call_ended`: the time for which a call had armed or disarmed it is over. */
  readonly reason: "schedule" | "call" | "call_ended" | "file";
  /** Who called; null for every other reason. */
  readonly principalKey: string | null;
  /** When it changes next, as far as is known, epoch milliseconds. */
  readonly untilMs: number | null;
}

export interface ArmedSourcesOptions {
  readonly named: NamedSources;
  readonly calls: ArmedCalls;
  readonly metrics: Metrics;
  readonly world: World;
}

/** The wall clock may be set, so a change that is far away is not waited for in one go. */
const LONGEST_WAIT_MS = 60_000;

/** See docs/cameras.md#armed-times. */
export class ArmedSources implements AsyncDisposable {
  readonly #options: ArmedSourcesOptions;
  readonly #following = new TaskGroup();
  /** What was told last, by name. */
  readonly #told = new Map<string, ArmedState>();
  #tell: (name: string, change: ArmedChange) => void = () => {};
  /** Aborts when the next change may come earlier than it was. */
  #waking = new AbortController();

  constructor(options: ArmedSourcesOptions) {
    this.#options = options;
    for (const state of ["armed", "disarmed"] as const) {
      options.metrics.observeValue("service_sources_armed", { state }, () => {
        return this.#sources.filter((source) => this.stateOf(source).isArmed === (state === "armed")).length;
      });
    }
  }

  /** Follows the schedules from here on; `tell` is called for each change. */
  start(tell: (name: string, change: ArmedChange) => void): void {
    this.#tell = tell;
    for (const source of this.#sources) this.#told.set(source.name, this.stateOf(source));
    this.#following.start((signal) => this.#follow(signal));
  }

  stateOf({ name, watch: { armed } }: AlwaysOnSource): ArmedState {
    const { calls, world } = this.#options;
    return armedAt(armed, calls.of(name), world.now());
  }

  /**
   * Arms or disarms a camera until its schedule changes next, or for so long. Errors: 422 `for_seconds`, 404
   * for a source that the caller may not use, 409 for one that is not always watched, 503 where the disk does
   * not take it.
   */
  call(caller: Caller, name: string, { isArmed, body }: { isArmed: boolean; body: ArmBody }): ArmedLook {
    const { named, calls, world } = this.#options;
    const source = named.find(name, caller.principalKey);
    if (source === null) throw refuse.notFound("Source", "name");
    if (!isAlwaysOn(source)) {
      throw refuse.conflict("name", "Cannot arm or disarm a source that is not always watched");
    }
    const seconds = body.for_seconds ?? null;
    const rules = new FieldRules();
    if (seconds !== null) rules.range("for_seconds", seconds, LIMITS.sources.armedSeconds);
    rules.check();
    const forMs = seconds === null ? null : seconds * 1000;
    const called = calledAt(source.watch.armed, { armed: isArmed, forMs }, world.now());
    calls.replace(this.#callsInForce(name, called));
    this.#note(source, { reason: "call", principalKey: caller.principalKey });
    this.#waking.abort();
    return { name, ...lookOf(this.stateOf(source)) };
  }

  /**
   * The file has other sources or schedules: what a call has said of a schedule that is gone does not count
   * any more.
   */
  fileChanged(): void {
    this.#forgetCalls();
    this.#noteAll("file");
    this.#waking.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#following.close();
  }

  get #sources(): readonly AlwaysOnSource[] {
    return this.#options.named.all.filter(isAlwaysOn);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    while (!signal.aborted) {
      this.#waking = new AbortController();
      this.#noteAll("schedule");
      this.#forgetCalls();
      const nowMs = world.now();
      const changes = this.#sources.map((source) => this.stateOf(source).changeMs ?? Infinity);
      const waitMs = Math.min(LONGEST_WAIT_MS, ...changes.map((changeMs) => Math.max(1, changeMs - nowMs)));
      await pause(world, waitMs, AbortSignal.any([signal, this.#waking.signal]));
    }
  }

  #noteAll(reason: "schedule" | "file"): void {
    for (const source of this.#sources) {
      const before = this.#told.get(source.name);
      const state = this.stateOf(source);
      const hasCallEnded = reason === "schedule" && before?.by === "call" && state.by === "schedule";
      const why = { reason: hasCallEnded ? "call_ended" as const : reason, principalKey: null };
      if (before && before.isArmed !== state.isArmed) this.#note(source, why);
      else this.#told.set(source.name, state);
    }
  }

  #note(source: AlwaysOnSource, why: Pick<ArmedChange, "reason" | "principalKey">): void {
    const state = this.stateOf(source);
    const { isArmed, changeMs: untilMs } = state;
    this.#told.set(source.name, state);
    const { name } = source;
    this.#options.world.log.info(isArmed ? "a camera is armed" : "a camera is disarmed", {
      ...{ source: name, reason: why.reason },
    });
    this.#tell(name, { isArmed, untilMs, ...why });
  }

  /** The calls that count, with that of one source as given. */
  #callsInForce(name: string | null = null, call: ArmedByCall | null = null): Map<string, ArmedByCall> {
    const { calls, world } = this.#options;
    const kept = new Map<string, ArmedByCall>();
    for (const { name: of, watch: { armed } } of this.#sources) {
      const known = of === name ? call : calls.of(of);
      if (known && isInForce(known, armed, world.now())) kept.set(of, known);
    }
    return kept;
  }

  /**
   * Forgets the calls that do not count any more. Where the disk refuses that, they stay in the file, and
   * still do not count.
   */
  #forgetCalls(): void {
    const { calls } = this.#options;
    const kept = this.#callsInForce();
    if (kept.size === calls.all.size) return;
    try {
      calls.replace(kept);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
}

export function lookOf({ isArmed, by, changeMs }: ArmedState): Omit<ArmedLook, "name"> {
  return { armed: isArmed, armed_by: by, next_change_ms: changeMs };
}
