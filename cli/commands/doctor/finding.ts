/** What a check of the doctor found. */

/** `unseen` is what the server tells nobody: it is said, and not guessed. */
export type Verdict = "ok" | "warning" | "failure" | "unseen";

export interface Finding {
  /** What was looked at, in one or two words. */
  readonly check: string;
  readonly verdict: Verdict;
  readonly detail: string;
  /** What to do about it. */
  readonly advice?: string;
}

export const ok = (check: string, detail: string): Finding => ({ check, verdict: "ok", detail });
export const warning = (check: string, detail: string, advice: string): Finding => ({
  ...{ check, verdict: "warning", detail, advice },
});
export const failure = (check: string, detail: string, advice: string): Finding => ({
  ...{ check, verdict: "failure", detail, advice },
});
export const unseen = (check: string, detail: string): Finding => ({ check, verdict: "unseen", detail });

/** `79.6 GB`. */
export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
