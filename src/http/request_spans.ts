/** The span of a request: named by its method and route, with its answer's status. See
 * docs/deployment/monitoring.md#traces.
 */

import type { TraceSpan, Tracing } from "../base/tracing.ts";
import type { Caller } from "../flow/caller.ts";

/** Methods that others may have in a span's name; another one is no word of ours. */
const METHODS = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** Another text in its place is the caller's, and stays out of spans. */
const RUN_ID = /^run-[0-9a-f]{32}$/;

export class RequestSpans {
  readonly #tracing: Tracing;
  /** By request, while it is answered. */
  readonly #spans = new WeakMap<Request, TraceSpan>();

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  get isOn(): boolean {
    return this.#tracing.isOn;
  }

  /** The span ends when the answer begins; a body that is streamed goes on without it. */
  async around(
    request: Request,
    caller: Pick<Caller, "requestId" | "principalKey">,
    answer: () => Response | Promise<Response>,
  ): Promise<Response> {
    const method = METHODS.has(request.method) ? request.method : "_OTHER";
    const attributes = {
      "http.request.method": method,
      "url.scheme": request.url.startsWith("https:") ? "https" : "http",
      "service.request.id": caller.requestId,
    };
    using span = this.#tracing.root(
      method,
      { kind: "server", attributes },
      request.headers.get("traceparent"),
    );
    this.#spans.set(request, span);
    const response = await this.#tracing.within(span, answer);
    span.set({
      "http.response.status_code": response.status,
      "enduser.pseudo.id": caller.principalKey || undefined,
    });
    if (response.status >= 500) span.failed(String(response.status));
    return response;
  }

  /** Called when the route is known. */
  matched(request: Request, route: string, id: string | undefined): void {
    const runId = id !== undefined && RUN_ID.test(id) ? id : undefined;
    this.#spans.get(request)?.rename(`${request.method} ${route}`);
    this.#spans.get(request)?.set({ "http.route": route, "service.run.id": runId });
  }
}
