import { deepEqual, equal, throws } from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import {
  parseSamplingPolicy,
  planSampling,
  type SamplingRequest,
  takesEveryFrame,
} from "../../../src/model/frames/sampling.ts";

type Route = "ingest" | "reason";

/** Checks a request: `expected` is "fps of policy, every frame or not", or the field that is refused. */
function check(route: Route, request: SamplingRequest, sourceFps: number | null, expected: string) {
  const message = `${route} ${JSON.stringify(request)} ${sourceFps}`;
  if (expected.startsWith("422 ")) {
    throws(() => planSampling(request, sourceFps, route), (error) => {
      equal(error instanceof Refusal && error.status, 422, message);
      deepEqual((error as Refusal).details.map((fault) => fault.field), [expected.slice(4)], message);
      return true;
    });
    return;
  }
  const plan = planSampling(request, sourceFps, route);
  equal(plan.sourceFps, sourceFps, message);
  equal(`${plan.sampleFps} ${plan.policy}${takesEveryFrame(plan) ? " every" : ""}`, expected, message);
}

Deno.test("the adaptive policy takes every frame of a source whose rate is known and within the limits", () => {
  check("ingest", {}, 25, "25 source_fps_adaptive every");
  check("ingest", { policy: "source_fps_adaptive" }, 29.97, "29.97 source_fps_adaptive every");
  check("ingest", { policy: "adaptive" }, 12.5, "12.5 source_fps_adaptive every");
  check("ingest", { policy: "ADAPTIVE" }, 12.5, "12.5 source_fps_adaptive every");
  check("ingest", { policy: "Source_FPS_Adaptive" }, 12.5, "12.5 source_fps_adaptive every");
  check("ingest", { policy: null }, 25, "25 source_fps_adaptive every");
  check("ingest", {}, 0.2, "0.2 source_fps_adaptive every");
  check("ingest", {}, 120, "120 source_fps_adaptive every");
  check("ingest", {}, 240, "120 source_fps_adaptive");
  check("ingest", {}, 0.1, "0.2 source_fps_adaptive every");
  check("ingest", { sampleFps: 5, fixedFps: 7 }, 25, "25 source_fps_adaptive every");
  check("ingest", { sampleFps: -1 }, 25, "422 sample_fps");
  check("ingest", { fixedFps: 9999 }, 25, "422 fixed_fps");
  check("reason", { fixedFps: 0.1 }, 25, "422 fixed_fps");
  check("reason", {}, 25, "25 source_fps_adaptive every");
});

Deno.test("the adaptive policy falls back to the caller's hint, then to a rate of its own", () => {
  check("ingest", {}, null, "2 source_fps_adaptive");
  check("ingest", { sampleFps: 5 }, null, "5 source_fps_adaptive");
  check("ingest", { fixedFps: 7 }, null, "7 source_fps_adaptive");
  check("ingest", { sampleFps: 5, fixedFps: 7 }, null, "5 source_fps_adaptive");
  check("reason", {}, null, "24 source_fps_adaptive");
  check("reason", { fixedFps: 7 }, null, "24 source_fps_adaptive");
});

Deno.test("the fixed policy needs a rate within the limits", () => {
  check("ingest", { policy: "fixed", fixedFps: 2 }, 25, "2 fixed");
  check("ingest", { policy: "FIXED", fixedFps: 2 }, null, "2 fixed");
  check("ingest", { policy: "fixed", sampleFps: 3 }, 25, "3 fixed");
  check("ingest", { policy: "fixed", sampleFps: 3, fixedFps: 2 }, 25, "3 fixed");
  check("ingest", { policy: "fixed", fixedFps: 25 }, 25, "25 fixed");
  check("ingest", { policy: "fixed", fixedFps: 0.2 }, 25, "0.2 fixed");
  check("ingest", { policy: "fixed", fixedFps: 120 }, 25, "120 fixed");
  check("ingest", { policy: "fixed" }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: null, sampleFps: null }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: 0.19 }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: 120.01 }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: 0 }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: -2 }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", fixedFps: NaN }, 25, "422 fixed_fps");
  check("ingest", { policy: "fixed", sampleFps: 500, fixedFps: 2 }, 25, "422 sample_fps");
  check("reason", { policy: "fixed" }, 25, "1 fixed");
  check("reason", { policy: "fixed", fixedFps: 4 }, 25, "4 fixed");
  check("reason", { policy: "fixed", fixedFps: 0.1 }, 25, "422 fixed_fps");
});

Deno.test("an unknown policy is refused", () => {
  for (const policy of ["", " ", "fixed ", "all", "keyframes", "adaptiv", "null"]) {
    check("ingest", { policy, fixedFps: 2 }, 25, "422 sampling_policy");
    equal(parseSamplingPolicy(policy), null);
  }
});
