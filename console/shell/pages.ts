/** All pages of the console. A page that is not listed here does not exist. */

import type { ComponentType } from "preact";
import { CameraPage } from "../pages/cameras/camera_page.tsx";
import { Cameras } from "../pages/cameras/cameras.tsx";
import { LiveSessionPage } from "../pages/live/session_page.tsx";
import { StartLive } from "../pages/live/start_live.tsx";
import { NewAnalysis } from "../pages/new/new_analysis.tsx";
import { Overview } from "../pages/overview/overview.tsx";
import { Policies } from "../pages/policies/policies.tsx";
import { RunPage } from "../pages/run/run_page.tsx";
import { Runs } from "../pages/runs/runs.tsx";
import { Search } from "../pages/search/search.tsx";
import { Triggers } from "../pages/triggers/triggers.tsx";
import { SystemPage } from "../pages/system/system_page.tsx";
import { HookPage } from "../pages/webhooks/hook/hook_page.tsx";
import { Webhooks } from "../pages/webhooks/webhooks.tsx";
import type { Place } from "./place.ts";

export interface PageEntry {
  /**
   * First parts of the address: `["runs"]`; a page may have further parts after them. `*` stands for any
   * part.
   */
  readonly path: readonly string[];
  /** The name in the rail, of the page itself or of the one that it lies below. */
  readonly rail?: string;
  /** One character before the name in the rail; a page without one is not listed there. */
  readonly mark?: string;
  /**
   * What makes two addresses different pages, so that no state goes from one to the other; the entry unless
   * given.
   */
  readonly keyOf?: (path: readonly string[]) => string;
  readonly Page: ComponentType<Place>;
}

/** In the order of the rail. */
export const PAGES: readonly PageEntry[] = [
  { path: [], rail: "Overview", mark: "⌂", Page: Overview },
  { path: ["runs"], rail: "Runs", mark: "▤", Page: Runs },
  { path: ["new"], rail: "New analysis", mark: "+", Page: NewAnalysis },
  {
    path: ["runs", "*"],
    rail: "Runs",
    keyOf: ([, runId]) => `run ${runId}`,
    Page: RunPage,
  },
  { path: ["live"], rail: "Live", mark: "◉", Page: StartLive },
  {
    path: ["live", "*"],
    rail: "Live",
    keyOf: ([, runId]) => `live ${runId}`,
    Page: LiveSessionPage,
  },
  { path: ["cameras"], rail: "Cameras", mark: "▦", Page: Cameras },
  {
    path: ["cameras", "*"],
    rail: "Cameras",
    keyOf: ([, name]) => `camera ${name}`,
    Page: CameraPage,
  },
  { path: ["search"], rail: "Search", mark: "⌕", Page: Search },
  { path: ["triggers"], rail: "Triggers", mark: "◆", Page: Triggers },
  {
    path: ["policies"],
    rail: "Policies",
    mark: "▲",
    keyOf: ([, runId]) => `policies ${runId}`,
    Page: Policies,
  },
  { path: ["webhooks"], rail: "Webhooks", mark: "↗", Page: Webhooks },
  {
    path: ["webhooks", "*"],
    rail: "Webhooks",
    keyOf: ([, webhookId]) => `webhook ${webhookId}`,
    Page: HookPage,
  },
  { path: ["system"], rail: "System", mark: "⚙", Page: SystemPage },
];

/** The page with the longest address that begins like this one; the first page for none. */
export function pageOf(path: readonly string[]): PageEntry | undefined {
  if (path.length === 0) return PAGES[0];
  const fits = PAGES.filter((entry) =>
    entry.path.length > 0 &&
    entry.path.every((part, at) => part === path[at] || (part === "*" && path[at] !== undefined))
  );
  return fits.sort((one, other) => other.path.length - one.path.length)[0];
}
