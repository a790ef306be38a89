import assert from "node:assert/strict";
import { join } from "node:path";
import { readConfig } from "../../../src/contract/config.ts";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import { readLabelMaps } from "../../../src/process/setting_files.ts";
import { KEY_A, KEY_B, MODEL, newRun, startService, type TestService } from "../../support/service.ts";

/** A service with the label maps of `maps`; none when it is undefined. */
async function withMaps(maps: unknown, env: Record<string, string> = {}): Promise<TestService> {
  const path = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    Deno.writeTextFileSync(path, JSON.stringify(maps) ?? "");
    return await startService({
      ...(maps !== undefined && { SERVICE_TENANT_LABEL_MAPS_PATH: path }),
      ...env,
    });
  } finally {
    Deno.removeSync(path);
  }
}

const frame = (frame_index: number, perceptual_hash: number | string) => ({
  frame_index,
  pts_ms: frame_index * 33,
  perceptual_hash,
  luma_mean: 0.5,
  flicker_score: 0,
  ghosting_score: 0,
  noise_variance_score: 0,
});

/** The names in rows and markers of a kept frame, of a frame without an event, and of a cut. */
async function labels(test: TestService, key = KEY_A) {
  const runId = await newRun(test, key);
  const frames = [frame(0, 0), frame(1, 0), { ...frame(2, 0), cut_score: 1 }];
  const { status, json } = await test.call(
    "POST",
    `/v1/runs/${runId}/analyze`,
    { model: MODEL, frames },
    key,
  );
  assert.equal(status, 200);
  // deno-lint-ignore no-explicit-any -- rows of an answer
  const rows: any[] = json.metadata;
  const stored = (await test.call("GET", `/v1/runs/${runId}/markers`, undefined, key)).json.markers;
  assert.deepEqual(stored, json.markers);
  return {
    events: rows.map((row) => row.annotations.events[0].type),
    objects: rows.map((row) => row.annotations.objects[0].label),
    fallbacks: rows.map((row) => row.fallback),
    markers: json.markers.map((marker: { event_type: string; status: string }) =>
      `${marker.event_type} ${marker.status}`
    ),
  };
}

const used = (...flags: boolean[]) => flags.map((each) => ({ used: each }));

Deno.test("without a file labels are as they are, and nothing falls back", async () => {
  await using test = await withMaps(undefined);
  const found = await labels(test);
  assert.deepEqual(found.events, ["keyframe_keep", "context_observation", "scene_cut"]);
  assert.deepEqual(found.objects, ["keyframe_candidate", "frame_context", "keyframe_candidate"]);
  assert.deepEqual(found.fallbacks, used(false, false, false));
  assert.deepEqual(found.markers.at(-1), "scene_cut exact");
  await using blank = await startService({ SERVICE_TENANT_LABEL_MAPS_PATH: "  " });
  assert.deepEqual(await labels(blank), found);
});

Deno.test("the principal's own map comes before the default, and a label that it lacks is a fallback", async () => {
  await using test = await withMaps({
    default: {
      events: { scene_cut: "shot_change", keyframe_keep: "kept" },
      objects: { frame_context: "background" },
    },
    tenants: {
      [principalKeyOf(KEY_A)]: {
        events: { keyframe_keep: "key_moment", context_observation: "context_observation" },
        objects: { keyframe_candidate: "candidate" },
      },
    },
  });
  const mine = await labels(test);
  assert.deepEqual(mine.events, ["key_moment", "context_observation", "shot_change"]);
  assert.deepEqual(mine.objects, ["candidate", "background", "candidate"]);
  // The first frame has both in the own map; the second lacks its object there, the third its event.
  assert.deepEqual(mine.fallbacks, used(false, true, true));
  // The renamed cut is no longer exact by its name, only by its confidence.
  assert.deepEqual(mine.markers.map((marker: string) => marker.split(" ")[0]), mine.events);
  const theirs = await labels(test, KEY_B);
  assert.deepEqual(theirs.events, ["kept", "context_observation", "shot_change"]);
  assert.deepEqual(theirs.objects, ["keyframe_candidate", "background", "keyframe_candidate"]);
  assert.deepEqual(theirs.fallbacks, used(true, true, true));
});

Deno.test("always exact is who is called scene_cut, segments are of who is called alike", async () => {
  const markersUnder = async (maps: unknown) => {
    await using test = await withMaps(maps);
    return (await labels(test)).markers;
  };
  const check = async (maps: unknown, expected: readonly string[]) => {
    assert.deepEqual(await markersUnder(maps), expected);
  };
  const keep = "keyframe_keep provisional";
  await check(undefined, [keep, "context_observation provisional", "scene_cut exact"]);
  await check({ default: { events: { scene_cut: "shot_change" } } }, [
    keep,
    "context_observation provisional",
    "shot_change provisional",
  ]);
  await check({ default: { events: { context_observation: "scene_cut" } } }, [keep, "scene_cut exact"]);
  await check({ default: { events: { context_observation: "keyframe_keep" } } }, [keep, "scene_cut exact"]);
});

Deno.test("open mode knows only the default and never falls back", async () => {
  await using test = await withMaps({
    default: { events: { scene_cut: "shot_change" } },
    tenants: { public: { events: { keyframe_keep: "never" } } },
  }, { SERVICE_REQUIRE_API_KEY: "false" });
  const found = await labels(test);
  assert.deepEqual(found.events, ["keyframe_keep", "context_observation", "shot_change"]);
  assert.deepEqual(found.fallbacks, used(false, false, false));
});

Deno.test("a file that cannot be used is a fault of the start that names the variable", () => {
  const folder = Deno.makeTempDirSync();
  try {
    const check = (text: string | undefined, expected: unknown) => {
      const path = join(folder, "maps.json");
      Deno.removeSync(folder, { recursive: true });
      Deno.mkdirSync(folder);
      if (text !== undefined) Deno.writeTextFileSync(path, text);
      const config = readConfig({ SERVICE_API_KEYS: "k", SERVICE_TENANT_LABEL_MAPS_PATH: path });
      const faults: string[] = [];
      const maps = readLabelMaps(config, faults);
      if (expected === "fault") {
        assert.equal(faults.length, 1, text);
        assert.match(
          faults[0]!,
          /^SERVICE_TENANT_LABEL_MAPS_PATH must name a file of label maps, got "[^\n]*$/,
        );
      } else assert.deepEqual([maps, faults], [expected, []]);
    };
    check("{}", {});
    check('{"default":{}}', { default: {} });
    check('{"tenants":{"api-key:x":{"objects":{"a":"b"}}}}', {
      tenants: { "api-key:x": { objects: { a: "b" } } },
    });
    check(undefined, "fault");
    check("", "fault");
    check("{", "fault");
    check("[]", "fault");
    check("null", "fault");
    check('{"default":null}', "fault");
    check('{"default":{"events":["a"]}}', "fault");
    check('{"default":{"events":{"a":1}}}', "fault");
    check('{"default":{"events":{"a":""}}}', "fault");
    check('{"default":{"event":{"a":"b"}}}', "fault");
    check('{"tenants":{"x":{"labels":{}}}}', "fault");
    check('{"defaults":{}}', "fault");
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});
