/** Who watches what: the live view of a run's session, or of whatever watches a named source. */

import { refuse } from "../../contract/refusal.ts";
import { sourceUriOf } from "../../model/source_name.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import type { LiveRegistry } from "./registry.ts";
import type { LiveSession } from "./session.ts";
import { fieldOf } from "./viewing/live_view.ts";
import type { Viewer } from "./viewing/viewer.ts";

export interface LiveViewsOptions {
  readonly timeline: Timeline;
  readonly registry: LiveRegistry;
  readonly named: NamedSources;
}

/** Errors of both: those of `LiveView.join`. */
export class LiveViews {
  readonly #options: LiveViewsOptions;

  constructor(options: LiveViewsOptions) {
    this.#options = options;
  }

  /**
   * A viewer of the open session of a run. Errors: 422 and 404 on the run, 404 where it has no open session.
   */
  async ofRun(caller: Caller, runId: string): Promise<Viewer> {
    const { timeline, registry } = this.#options;
    ownedRun(timeline.view, caller, runId);
    return await joined(registry.ofRun(runId), caller, { followsSource: false });
  }

  /**
   * A viewer of the caller's newest session that watches a named source, through all runs that the session
   * gets. Errors: 404 for a source that the caller may not use, and where no session watches it.
   */
  async ofSource(caller: Caller, name: string): Promise<Viewer> {
    const { registry, named } = this.#options;
    const { principalKey } = caller;
    if (!named.find(name, principalKey)) throw refuse.notFound("Source", "name");
    const uri = sourceUriOf(name);
    const session = registry.ofPrincipal(principalKey).findLast(({ identity }) => identity.sourceUri === uri);
    return await joined(session, caller, { followsSource: true });
  }
}

async function joined(
  session: LiveSession | null | undefined,
  { signal }: Caller,
  options: { readonly followsSource: boolean },
): Promise<Viewer> {
  if (!session) throw refuse.notFound("Live session", fieldOf(options));
  return await session.view.join(signal, options);
}
