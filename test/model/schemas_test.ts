import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { z } from "zod";
import { freshFiles, schemaFaults } from "../../scripts/build_schemas.ts";
import { EVENTS, eventTypeOf, findEvent } from "../../src/model/events/event_table.ts";
import { croppedFrame } from "../../src/model/frames/coordinates.ts";
import {
  type AnalyzedFrames,
  frameRow,
  type RowContext,
  typedFrames,
} from "../../src/model/frames/frame_row.ts";
import { labelsOf } from "../../src/model/frames/label_map.ts";
import { deriveMarkers } from "../../src/model/frames/marker.ts";
import { MODES } from "../../src/model/mode.ts";
import { frameMetadata } from "../../src/model/published/frame_metadata.ts";
import { PROCESSING_DEFAULTS, processingConfig } from "../../src/model/published/processing_config.ts";
import { schemaText } from "../../src/model/published/json_schema.ts";
import { publishedSchemas } from "../../src/model/published/published.ts";
import { triggerProgram } from "../../src/model/triggers/program.ts";
import { programFaults } from "../../src/model/triggers/validate.ts";
import { GATE_REASONS } from "../../src/model/frames/signals.ts";
import { readVariants, type Variants } from "../support/variants.ts";

const SCHEMAS_DIRECTORY = new URL("../../schemas/", import.meta.url);

/** The committed file, as a client would read it. */
function committedSchema(name: string): object {
  return JSON.parse(Deno.readTextFileSync(new URL(name, SCHEMAS_DIRECTORY)));
}

/** Strict: a keyword that the draft does not know, or a missing type, is an error. */
function validator(schema: object) {
  return new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
}

function check(variants: Variants, schema: object, shape?: z.ZodType) {
  const accepts = validator(schema);
  variants.valid.forEach((value, index) => {
    assert.ok(accepts(value), `valid ${index}: ${JSON.stringify(accepts.errors)}`);
    if (shape) {
      assert.deepEqual(shape.safeParse(value).error?.issues, undefined, `valid ${index} by the table`);
    }
  });
  for (const { why, value } of variants.invalid) {
    assert.ok(!accepts(value), `the schema accepts: ${why}`);
    if (shape) assert.ok(!shape.safeParse(value).success, `the table accepts: ${why}`);
  }
}

Deno.test("every kind's schema and table row accept its samples and reject each fault", async (t) => {
  for (const row of Object.keys(EVENTS)) {
    const kind = row.replace(".*", "");
    await t.step(kind, () => {
      const variants = readVariants(`events/${kind}.json`);
      assert.ok(variants.valid.length >= 1 && variants.invalid.length >= 2);
      const shape = findEvent(kind === "trigger" ? "trigger.dock_entry" : kind)!.payload;
      check(variants, committedSchema(`event.${kind}.schema.json`), shape);
    });
  }
});

Deno.test("payloads are add-only: an unknown field is accepted and kept", () => {
  for (const row of Object.keys(EVENTS)) {
    const kind = row.replace(".*", "");
    const accepts = validator(committedSchema(`event.${kind}.schema.json`));
    for (const sample of readVariants(`events/${kind}.json`).valid) {
      const grown = { ...sample as object, added_later: { by: "a newer version" } };
      assert.ok(accepts(grown), kind);
      assert.deepEqual(EVENTS[row as keyof typeof EVENTS].payload.parse(grown), grown, kind);
    }
  }
});

Deno.test("frame rows are accepted and rejected by the published schema", () => {
  const variants = readVariants("schemas/frame_metadata.json");
  assert.ok(variants.invalid.length >= 40);
  check(variants, committedSchema("frame_metadata.schema.json"), frameMetadata);
});

Deno.test("processing configurations are accepted and rejected by the published schema", () => {
  check(
    readVariants("schemas/processing_config.json"),
    committedSchema("processing_config.schema.json"),
    processingConfig,
  );
});

Deno.test("trigger programs are accepted and rejected as their schema says; so the service does", () => {
  const variants = readVariants("schemas/trigger_program.json");
  check(variants, committedSchema("trigger_program.schema.json"));
  // The shape leaves rules to the validator, which decides.
  const isTaken = (value: unknown) => {
    const { success, data } = triggerProgram.safeParse(value);
    return success && programFaults(data).length === 0;
  };
  for (const value of variants.valid) assert.ok(isTaken(value), JSON.stringify(value));
  for (const { why, value } of variants.invalid) assert.ok(!isTaken(value), why);
});

Deno.test("the profile of every mode is a valid configuration of that mode and equal to the fixture", () => {
  const { valid } = readVariants("schemas/processing_config.json");
  assert.deepEqual(Object.values(PROCESSING_DEFAULTS), valid.slice(0, MODES.length));
  for (const mode of MODES) assert.equal(processingConfig.parse(PROCESSING_DEFAULTS[mode]).mode, mode);
});

Deno.test("a configuration that leaves the optional fields out gets their defaults", () => {
  const { allowFallback: _, keepAliveMinutes: __, ...required } = PROCESSING_DEFAULTS.balanced;
  assert.deepEqual(processingConfig.parse(required), {
    ...required,
    allowFallback: false,
    keepAliveMinutes: 35,
  });
});

for (const name of ["event_envelope", "cloudevent"]) {
  Deno.test(`the schema of ${name} accepts its samples and rejects each fault`, () => {
    check(readVariants(`schemas/${name}.json`), committedSchema(`${name}.schema.json`));
  });
}

Deno.test("the committed schemas are what the tables generate", () => {
  assert.deepEqual(schemaFaults(SCHEMAS_DIRECTORY), []);
});

Deno.test("a changed, a missing and a left-over schema file are each reported", () => {
  const directory = Deno.makeTempDirSync();
  try {
    const url = new URL(`file://${directory}/`);
    for (const [name, schema] of freshFiles()) Deno.writeTextFileSync(new URL(name, url), schemaText(schema));
    assert.deepEqual(schemaFaults(url), []);
    Deno.removeSync(new URL("event.vlm.schema.json", url));
    Deno.writeTextFileSync(new URL("cloudevent.schema.json", url), "{}\n");
    Deno.writeTextFileSync(new URL("event.zone_left.schema.json", url), "{}\n");
    assert.deepEqual(schemaFaults(url), [
      "cloudevent.schema.json differs from the tables",
      "event.vlm.schema.json is missing",
      "event.zone_left.schema.json belongs to no table row",
    ]);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("every schema names itself, its draft and its purpose, and generation is stable", () => {
  const [first, second] = [publishedSchemas(), publishedSchemas()];
  assert.deepEqual([...first.keys()], [...second.keys()]);
  for (const [name, schema] of first) {
    const { $schema, $id, title, description } = schema as Record<string, string>;
    assert.equal($schema, "https://json-schema.org/draft/2020-12/schema");
    assert.equal($id, name);
    assert.ok(title && description, name);
    assert.equal(schemaText(schema), schemaText(second.get(name)!));
  }
});

Deno.test("no published property is without a type: nothing slipped through the conversion", () => {
  for (const [name, schema] of publishedSchemas()) visit(schema as Record<string, unknown>, name);

  function visit(schema: Record<string, unknown>, path: string): void {
    assert.ok("type" in schema || "anyOf" in schema, `${path} has no type`);
    for (const [key, inner] of Object.entries(schema.properties ?? {})) visit(inner, `${path}/${key}`);
    (schema.anyOf as Record<string, unknown>[] | undefined)?.forEach((inner, index) =>
      visit(inner, `${path}/${index}`)
    );
  }
});

Deno.test("the bound of perceptual_hash is written with every digit", () => {
  const name = "event.frames_decoded.schema.json";
  assert.match(schemaText(publishedSchemas().get(name)!), /"maximum": 18446744073709551615\n/);
});

Deno.test("the type pattern of the CloudEvents schema fits the type of every kind", () => {
  const schema = publishedSchemas().get("cloudevent.schema.json") as {
    properties: { type: { pattern: string } };
  };
  const pattern = new RegExp(schema.properties.type.pattern);
  for (const kind of [...Object.keys(EVENTS), "trigger.dock_entry"]) assert.match(eventTypeOf(kind), pattern);
});

Deno.test("the rows and markers that the service derives fit what it publishes", () => {
  const column = (...values: number[]) => Float64Array.from(values);
  const scores = new Float32Array(2);
  const frames: AnalyzedFrames = {
    frameIndex: column(0, 1),
    signals: {
      count: 2,
      ptsMs: column(0, 400),
      perceptualHash: new BigUint64Array(2),
      lumaMean: scores,
      flickerScore: scores,
      ghostingScore: scores,
      noiseVarianceScore: scores,
    },
    gate: {
      count: 2,
      reason: Uint8Array.of(GATE_REASONS.indexOf("initial_frame"), GATE_REASONS.indexOf("no_trigger")),
      gateConfidence: column(1, 0),
      novelty: column(1, 0),
      temporalStability: column(1, 1),
      motion: column(0, 0),
      confidence: column(0.45, 0),
    },
  };
  const context: RowContext = {
    runId: "run-5b0d2f0c9a7e4d31b6f1c2a3d4e5f607",
    streamId: "stream-0",
    mode: "balanced",
    model: "Qwen/Qwen3-VL-4B-Instruct",
    samplingPolicy: "fixed",
    sampleFps: 2.5,
    segmentMs: 250,
    requestId: "req-0000000000000007",
    traceId: "trace-0000000000000007",
    labels: labelsOf(null, "public"),
  };
  const acceptsRow = validator(committedSchema("frame_metadata.schema.json"));
  const acceptsMarker = validator(committedSchema("event.marker_emitted.schema.json"));
  const coordinates = croppedFrame({ width: 1919, height: 1079 }, {
    x: 0.1,
    y: 0.25,
    width: 0.5,
    height: 0.5,
  });
  for (const row of [0, 1]) {
    assert.ok(acceptsRow(frameRow(context, frames, row)), JSON.stringify(acceptsRow.errors));
    assert.ok(
      acceptsRow(frameRow({ ...context, coordinates }, frames, row)),
      JSON.stringify(acceptsRow.errors),
    );
  }
  const markers = deriveMarkers(typedFrames(frames, context.labels), context);
  assert.equal(markers.length, 2);
  for (const marker of markers) assert.ok(acceptsMarker(marker), JSON.stringify(acceptsMarker.errors));
});
