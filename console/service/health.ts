/** How the service is, for the bar above every page and for the overview: its health, and what somebody
 * should look at.
 */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type {
  LiveSession,
  Model,
  System,
  SystemBackend,
  SystemHealth,
  WebhookOfRun,
} from "../../client/mod.ts";
import { liveName, liveStateText } from "../text/live_state.ts";
import { bytesText, counted } from "../text/numbers.ts";
import { ago, durationText } from "../text/time.ts";
import { useLoaded } from "./loaded.ts";
import { client, whenCallerChanges } from "./session.ts";

/** Something that somebody should look at. */
export interface HealthNote {
  /** A sentence. */
  readonly text: string;
  /** The page that shows more; null where there is none. */
  readonly path: readonly string[] | null;
  /** The code of the reason that it is, where it is one. */
  readonly code?: string;
}

export interface ServiceHealth {
  readonly result: SystemHealth["result"];
  /** Why, as a sentence. */
  readonly reason: string;
  readonly notes: readonly HealthNote[];
}

/** What was known last; null before the first answer. */
export const serviceHealth = signal<ServiceHealth | null>(null);
whenCallerChanges(() => void (serviceHealth.value = null));

/** Counts what was done on a page that changes how the service is. */
const changes = signal(0);

/** Asks for the health of the service now. */
export function refreshHealth(): void {
  changes.value += 1;
}

/**
 * What changes by the second is asked for so often, and what costs the service a probe, or changes by the
 * hour, so seldom.
 */
const OFTEN_MS = 10_000;
const SELDOM_MS = 60_000;
const SHORT_GAP_MS = 5_000;
/** Less room than this share of the disk. */
const DISK_LEAST = 0.05;

/**
 * Keeps `serviceHealth` up to date; for the frame, once. `page` asks anew when it changes: much follows from
 * what is done on a page.
 */
export function useServiceHealth(page: string): void {
  const asked = client.value;
  const often = useLoaded(
    async (signal) => {
      const [health, sessions, webhooks] = await Promise.all([
        asked.getSystemHealth({ signal }),
        asked.listLiveSessions({ signal }),
        asked.listAllWebhooks({ signal }),
      ]);
      return { health, sessions, webhooks };
    },
    [asked, page, changes.value],
    OFTEN_MS,
  );
  const seldom = useLoaded(
    async (signal) => {
      const [models, system] = await Promise.all([
        asked.listModels({ signal }),
        asked.getSystem({ signal }),
      ]);
      return { models, system };
    },
    [asked],
    SELDOM_MS,
  );
  useEffect(() => {
    if (!often.value) return;
    const { health, sessions, webhooks } = often.value;
    serviceHealth.value = {
      result: health.result,
      reason: reasonOf(health),
      notes: [
        ...healthNotes(health),
        ...sessionNotes(sessions),
        ...webhookNotes(webhooks),
        ...(seldom.value ? [...modelNotes(seldom.value), ...diskNotes(seldom.value.system)] : []),
      ],
    };
  }, [often.value, seldom.value]);
}

/** Reasons that stand in every result, as they are about cameras and models and not about the service. */
const OF_CAMERAS: ReadonlySet<string> = new Set(["sources_file_faulty", "camera_down"]);
const OF_OTHERS: ReadonlySet<string> = new Set([...OF_CAMERAS, "model_unknown"]);

function reasonOf({ reasons }: SystemHealth): string {
  const first = reasons.find(({ code }) => !OF_OTHERS.has(code)) ?? reasons[0];
  return first === undefined ? "" : `${first.text}${first.at_ms === null ? "" : `, ${ago(first.at_ms)}`}.`;
}

function healthNotes({ result, reasons }: SystemHealth): HealthNote[] {
  const isWell = result === "healthy" || result === "idle";
  return reasons.filter(({ code }) => !isWell || OF_OTHERS.has(code)).map(({ code, text, at_ms }) => ({
    text: `${text}${at_ms === null ? "" : `, ${ago(at_ms)}`}.`,
    path: OF_CAMERAS.has(code) ? null : ["system"],
    code,
  }));
}

function sessionNotes(sessions: readonly LiveSession[]): HealthNote[] {
  return sessions.map((session) => ({
    session,
    state: liveStateText(session, Date.now()),
  }))
    .filter(({ session, state }) => state.tone === "bad" && !isShortGap(session))
    .map(({ session, state }) => ({
      text: `${liveName(session)}: ${state.sentence}`,
      path: ["live", session.run_id],
    }));
}

/** Cameras drop a connection now and then, and are back with the first attempt. */
function isShortGap({ gap }: LiveSession): boolean {
  return gap !== null && Date.now() - gap.since_ms < SHORT_GAP_MS;
}

function webhookNotes(webhooks: readonly WebhookOfRun[]): HealthNote[] {
  const failing = webhooks.flatMap(({ failing_since_ms }) => failing_since_ms ?? []);
  if (failing.length === 0) return [];
  const since = durationText(Date.now() - Math.min(...failing));
  const have = failing.length === 1 ? "has" : "have";
  return [{
    text: `${counted(failing.length, "webhook")} ${have} been failing for ${since}.`,
    path: ["webhooks"],
  }];
}

interface Models {
  readonly models: readonly Model[];
  readonly system: System;
}

/**
 * One note a model server, whatever its number of models. A service without backends describes nothing, which
 * is no fault.
 */
function modelNotes({ models, system: { backends } }: Models): HealthNote[] {
  const isAway = models.every(({ availability }) => availability === "unavailable");
  const hasAnswered = backends.some(({ fault, models }) => fault === null && models != null);
  if (backends.length > 0 && isAway && !hasAnswered) {
    const faults = backends.flatMap(({ fault }) => fault ?? []);
    const text = faults.length === 0
      ? "No model backend answers."
      : `No model backend answers: ${faults.join("; ")}.`;
    return [{ text, path: ["system"] }];
  }
  return backends.flatMap((backend) => {
    const text = noteOf(backend);
    return text === null
      ? []
      : [{ text: `The model server ${backend.name ?? backend.provider} ${text}`, path: ["system"] }];
  });
}

function noteOf({ circuit, fault, is_slow }: SystemBackend): string | null {
  if (circuit === "open") return "is skipped for now, because its last calls failed.";
  if (fault != null) return `cannot be asked for its models: ${fault}.`;
  return is_slow === true ? "is slow: too many of its answers took longer than 5 s." : null;
}

function diskNotes({ disk }: System): HealthNote[] {
  if (disk === null || disk.free_bytes >= disk.total_bytes * DISK_LEAST) {
    return [];
  }
  return [{
    text: `The disk has ${bytesText(disk.free_bytes)} left of ${bytesText(disk.total_bytes)}.`,
    path: ["system"],
  }];
}
