/** What tracing does while more spans wait than may. */

import assert from "node:assert/strict";
import { Metrics } from "../../src/base/metrics.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { OtlpTracing } from "../../src/remote/otlp_tracing.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";

const CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Deno.test("a span that could not wait is not made, and what it asks of others goes on with the caller's trace", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const metrics = new Metrics();
  const tracing = new OtlpTracing({
    ...{ endpoint: `http://127.0.0.1:${silent.addr.port}`, sampleRatio: 1, roots: [], version: "0" },
    ...{ world: realWorld(quietLog()), metrics },
  });
  const asked = () => {
    using root = tracing.root("request", {}, CALLERS);
    return tracing.within(root, () => {
      using child = tracing.child("call");
      return tracing.within(child, () => tracing.traceparent());
    });
  };
  const made = asked()!;
  assert.match(made, /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
  assert.notEqual(made, CALLERS);
  for (let count = 2; count < LIMITS.traces.queueSpans; count++) tracing.root("one more")[Symbol.dispose]();
  assert.equal(await dropped(metrics), 0);
  assert.equal(asked(), CALLERS);
  assert.equal(await dropped(metrics), 2);
  using own = tracing.root("of nobody");
  assert.equal(tracing.within(own, () => tracing.traceparent()), null);
  silent.close();
  await tracing[Symbol.asyncDispose]();
});

async function dropped(metrics: Metrics): Promise<number> {
  return Number(/^service_trace_spans_dropped_total (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
}
