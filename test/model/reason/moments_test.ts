import assert from "node:assert/strict";
import type { AudioObservation, LocalAudio } from "../../../src/model/sidecars/local_audio.ts";
import {
  type ChunkMoment,
  fuseMoments,
  kindOfLabel,
  type Moments,
  parseMomentsAnswer,
} from "../../../src/model/reason/moments.ts";

const CLIP_MS = 8000;

const CLAIM = {
  start_offset_ms: 1000,
  end_offset_ms: 3000,
  modalities: ["audio", "video"],
  kind: "sound_effect",
  description: "An explosion",
  confidence: 0.8,
};

function parsed(...claims: unknown[]) {
  return parseMomentsAnswer(JSON.stringify({ moments: claims }), CLIP_MS);
}

function momentsOf(...claims: unknown[]): readonly ChunkMoment[] {
  const answered = parsed(...claims);
  assert.ok(answered.ok, JSON.stringify(claims));
  return answered.moments;
}

Deno.test("a moment keeps its contents, and its chunk is labelled by the first", () => {
  const answered = parsed(CLAIM);
  assert.ok(answered.ok);
  assert.deepEqual(answered.moments, [{ ...CLAIM, intent: null, audio_visual_relation: null }]);
  assert.deepEqual(answered.rawOutput, { moments: [CLAIM] });
  assert.deepEqual(answered.overlay, {
    eventType: "context_observation",
    objectLabel: "sound_effect",
    summary: "An explosion",
    description: "An explosion",
    confidence: 0.8,
  });
  const none = parsed();
  assert.ok(none.ok);
  assert.deepEqual([none.moments, none.overlay.objectLabel, none.overlay.confidence], [
    [],
    "multimodal_activity",
    0,
  ]);
  assert.match(none.overlay.summary, /\w/);
});

Deno.test("times are cut to the clip, empty moments dropped, the rest sorted, and 32 are enough", () => {
  const at = (start: number, end: number) => ({ ...CLAIM, start_offset_ms: start, end_offset_ms: end });
  const times = (...claims: unknown[]) =>
    momentsOf(...claims).map((moment) => [moment.start_offset_ms, moment.end_offset_ms]);
  assert.deepEqual(times(at(-500, 9000)), [[0, 8000]]);
  assert.deepEqual(times(at(3000, 3000), at(4000, 3000), at(9000, 9500), at(-2, -1)), []);
  assert.deepEqual(times(at(5000, 6000), at(0, 2000), at(0, 1000)), [[0, 1000], [0, 2000], [5000, 6000]]);
  assert.deepEqual(times(at(0.4, 1000.6)), [[0, 1001]]);
  assert.deepEqual(times(at(0, 1e300)), [[0, 8000]]);
  const many = Array.from({ length: 33 }, (_, index) => at(index * 10, index * 10 + 5));
  assert.equal(momentsOf(...many).length, 32);
  assert.equal(momentsOf(...many.slice(0, 32), "not read any more").length, 32);
});

Deno.test("modalities and kinds are mapped to the names in events", () => {
  const senses: [unknown[], string, string[] | null][] = [
    [["video"], "other", ["video"]],
    [["Visual", " AUDIO "], "other", ["audio", "video"]],
    [["moving picture"], "other", ["video"]],
    [["background music"], "other", ["audio"]],
    [["spoken voice", "smell", 3], "other", ["audio"]],
    [["smell"], "speech", ["audio"]],
    [[], "ambient", ["audio"]],
    [["smell"], "other", null],
    [[], "interaction", null],
    [["videotape"], "mechanical", null],
  ];
  for (const [modalities, kind, expected] of senses) {
    const answered = parsed({ ...CLAIM, modalities, kind });
    assert.deepEqual(
      answered.ok ? answered.moments[0]!.modalities : null,
      expected,
      JSON.stringify(modalities),
    );
  }
  const kinds: [string, string][] = [
    ["speech", "speech"],
    ["Dialog", "speech"],
    ["spoken words", "speech"],
    ["machine voice", "speech"],
    ["Sound Effect", "sound_effect"],
    ["sound-effect", "sound_effect"],
    ["beep", "sound_effect"],
    ["loud impact", "sound_effect"],
    ["background music", "music"],
    ["background", "ambient"],
    ["washing machine", "mechanical"],
    ["interactive", "interaction"],
    ["other", "other"],
    ["weather", "other"],
    ["", "other"],
  ];
  for (const [kind, expected] of kinds) assert.equal(momentsOf({ ...CLAIM, kind })[0]!.kind, expected, kind);
});

Deno.test("texts are cut, blank ones are none, confidence is clamped", () => {
  const [moment] = momentsOf({
    ...CLAIM,
    description: ` ${"d".repeat(2000)}`,
    intent: "  ",
    audio_visual_relation: "r".repeat(1025),
    confidence: 3,
  });
  assert.equal(moment!.description, "d".repeat(1024));
  assert.equal(moment!.intent, null);
  assert.equal(moment!.audio_visual_relation, "r".repeat(1024));
  assert.equal(moment!.confidence, 1);
  assert.equal(momentsOf({ ...CLAIM, confidence: -1 })[0]!.confidence, 0);
});

Deno.test("one claim of the wrong shape makes the whole answer a mismatch", () => {
  const { kind: _, ...kindless } = CLAIM;
  const wrong: unknown[] = [
    null,
    "moment",
    [],
    kindless,
    { ...CLAIM, start_offset_ms: "zero" },
    { ...CLAIM, end_offset_ms: null },
    { ...CLAIM, description: " " },
    { ...CLAIM, description: 1 },
    { ...CLAIM, confidence: null },
    { ...CLAIM, intent: 5 },
    { ...CLAIM, audio_visual_relation: {} },
  ];
  for (const claim of wrong) {
    const answered = parsed(CLAIM, claim);
    assert.ok(!answered.ok, JSON.stringify(claim));
    assert.equal(answered.fault, "schema_mismatch");
    assert.deepEqual(answered.rawOutput, { moments: [CLAIM, claim] });
  }
  for (const text of ['{"moments": {}}', "{}", '{"moment": []}']) {
    assert.deepEqual(parseMomentsAnswer(text, CLIP_MS), {
      ok: false,
      fault: "schema_mismatch",
      rawOutput: JSON.parse(text),
    });
  }
  assert.equal(parseMomentsAnswer("nothing", CLIP_MS).ok, false);
});

/** Confidence of claimed moments: below that of local sounds, so that the origin of a moment can be seen. */
const CLAIMED_CONFIDENCE = 0.6;

/** "speech 900-1900 hello" is a claim or an observation; "av:" and "v:" are the modalities of a claim. */
function claim(text: string): ChunkMoment {
  const [, senses, kind, start, end, description] = /^(?:(av|v):)?(\w+) (\d+)-(\d+) ?(.*)$/.exec(text)!;
  return {
    start_offset_ms: Number(start),
    end_offset_ms: Number(end),
    modalities: senses === "v" ? ["video"] : senses === "av" ? ["audio", "video"] : ["audio"],
    kind: kind as ChunkMoment["kind"],
    description: description || kind!,
    intent: "claimed intent",
    audio_visual_relation: "claimed relation",
    confidence: CLAIMED_CONFIDENCE,
  };
}

function observation(text: string): AudioObservation {
  const [, kind, start, end, words] = /^(\w+) (\d+)-(\d+) ?(.*)$/.exec(text)!;
  const isSpeech = kind === "speech";
  return {
    start_offset_ms: Number(start),
    end_offset_ms: Number(end),
    kind: isSpeech ? "speech" : kind === "vad" ? "voice_activity" : "audio_event",
    label: isSpeech || kind === "vad" ? "speech" : kind!,
    confidence: 0.7,
    model: "m",
    ...(isSpeech && words && { transcript: words }),
  };
}

function analysisOf(...observations: string[]): LocalAudio {
  return {
    profile: "general",
    speech_engine: "auto",
    models: ["m"],
    observations: observations.map(observation),
    audio_duration_ms: CLIP_MS,
    audio_bytes: 1,
    queue_wait_ms: 0,
    stages: { decode_ms: 0, vad_ms: 0, classifier_ms: 0, asr_ms: 0 },
    capacity: { active: 1, queued: 0, limit: 1 },
    processing_ms: 1,
  };
}

/** "av speech 900-1900 Speaker: hello" for each. */
function shortly({ moments }: Moments): string[] {
  return moments.map((moment) =>
    `${moment.modalities.map((sense) => sense[0]).join("")} ${moment.kind} ${moment.start_offset_ms}-` +
    `${moment.end_offset_ms} ${moment.description}`
  );
}

function fused(claims: string[], observations: string[]): string[] {
  return shortly(
    fuseMoments(claims.map(claim), {
      local: analysisOf(...observations),
      localFailed: false,
      clipMs: CLIP_MS,
    }),
  );
}

Deno.test("the sounds of the local analysis become moments, voice activity does not", () => {
  assert.deepEqual(
    fused([], ["vad 0-5000", "explosion 120-860", "speech 900-1900 behind you", "music 0-100"]),
    [
      "a music 0-100 music",
      "a sound_effect 120-860 explosion",
      "a speech 900-1900 Speaker: behind you",
    ],
  );
  assert.deepEqual(fused([], ["speech 0-100"]), ["a speech 0-100 speech"], "no words, no speaker");
  assert.deepEqual(fused([], ["explosion 7900-9000", "explosion 8100-9000"]), [
    "a sound_effect 7900-8000 explosion",
  ]);
  const [moment] =
    fuseMoments([], { local: analysisOf("speech 0-9 hi"), localFailed: false, clipMs: CLIP_MS }).moments;
  assert.deepEqual([moment!.intent, moment!.audio_visual_relation, moment!.confidence], ["hi", null, 0.7]);
});

Deno.test("a label of the local analysis has a kind", () => {
  for (
    const [label, kind] of [
      ["music", "music"],
      ["silence", "ambient"],
      ["outside_rural_or_natural", "ambient"],
      ["engine", "mechanical"],
      ["vehicle", "mechanical"],
      ["explosion", "sound_effect"],
      ["musical", "sound_effect"],
    ]
  ) assert.equal(kindOfLabel(label!), kind);
});

Deno.test("a reported sound needs a matching local sound within half a second", () => {
  const rows: [string, string, boolean][] = [
    ["sound_effect 1000-2000", "explosion 2500-3000", true],
    ["sound_effect 1000-2000", "explosion 2501-3000", false],
    ["sound_effect 1000-2000", "explosion 0-500", true],
    ["sound_effect 1000-2000", "explosion 0-499", false],
    ["sound_effect 1000-2000", "speech 1000-2000 hi", false],
    ["sound_effect 1000-2000", "vad 1000-2000", false],
    ["av:interaction 1000-2000", "explosion 1000-2000", true],
    ["v:interaction 1000-2000", "vad 0-10", true],
    ["v:ambient 1000-2000", "vad 0-10", false],
    ["v:mechanical 1000-2000", "vad 0-10", true],
    ["speech 1000-2000", "explosion 1000-2000", false],
    ["speech 1000-2000", "speech 1000-2000", false],
    ["speech 1000-2000", "vad 1000-2000", false],
  ];
  for (const [said, local, stands] of rows) {
    const { moments } = fuseMoments([claim(said)], {
      local: analysisOf(local),
      localFailed: false,
      clipMs: CLIP_MS,
    });
    const isAvailable = moments.some(({ confidence }) => confidence === CLAIMED_CONFIDENCE);
    assert.equal(isAvailable, stands, `${said} | ${local}`);
  }
});

Deno.test("a supported moment gets the words of the local analysis", () => {
  assert.deepEqual(
    fused(["av:sound_effect 1000-2000 It means war"], [
      "explosion 900-1500",
      "whoosh 1800-1900",
      "explosion 2100-2200",
    ]),
    [
      "a sound_effect 900-1500 explosion",
      "av sound_effect 1000-2000 Heard locally: explosion, whoosh",
      "a sound_effect 1800-1900 whoosh",
      "a sound_effect 2100-2200 explosion",
    ],
  );
  const evidence = { local: analysisOf("explosion 900-1500"), localFailed: false, clipMs: CLIP_MS };
  const sound = fuseMoments([claim("av:sound_effect 1000-2000")], evidence).moments
    .find(({ modalities }) => modalities.length === 2)!;
  assert.deepEqual([sound.intent, sound.audio_visual_relation, sound.confidence], [null, null, 0.6]);

  assert.deepEqual(
    fused(["av:speech 1000-2000 He threatens her"], ["speech 900-1900 behind you", "speech 2300-2900 run"]),
    [
      "av speech 900-1900 Speaker: behind you",
      "a speech 2300-2900 Speaker: run",
    ],
  );
  assert.deepEqual(fused(["v:interaction 0-1000 A hand waves"], ["explosion 5000-6000"]), [
    "v interaction 0-1000 A hand waves",
    "a sound_effect 5000-6000 explosion",
  ]);
});

Deno.test("a repeated moment is kept once, two utterances stay two", () => {
  assert.deepEqual(fused([], ["explosion 0-1000", "explosion 1250-2000"]), [
    "a sound_effect 0-1000 explosion",
  ]);
  assert.deepEqual(fused([], ["explosion 0-1000", "explosion 1251-2000"]).length, 2);
  assert.deepEqual(fused([], ["explosion 0-1000", "whoosh 0-1000"]).length, 2);
  assert.deepEqual(fused([], ["speech 0-1000 hello", "speech 1100-2000 how are you"]).length, 2);
  assert.deepEqual(fused(["speech 0-900", "av:speech 100-900"], ["speech 0-1000 hello"]), [
    "av speech 0-1000 Speaker: hello",
  ]);
});

Deno.test("without a local analysis all moments are kept, after a failed one only those without sound", () => {
  const claims = ["speech 0-1000 said", "v:interaction 10-20 seen", "av:other 30-40 both"].map(claim);
  const unasked = fuseMoments(claims, { local: null, localFailed: false, clipMs: CLIP_MS });
  assert.deepEqual(unasked.moments, claims);
  assert.equal(unasked.overlay.objectLabel, "speech");
  const failed = fuseMoments(claims, { local: null, localFailed: true, clipMs: CLIP_MS });
  assert.deepEqual(shortly(failed), ["v interaction 10-20 seen"]);
});

Deno.test("the most confident moment labels a fused chunk, the earlier of two with the same confidence", () => {
  const label = (claims: ChunkMoment[], ...observations: string[]) =>
    fuseMoments(claims, { local: analysisOf(...observations), localFailed: false, clipMs: CLIP_MS }).overlay
      .objectLabel;
  assert.equal(label([claim("v:interaction 0-10")], "music 50-90"), "music");
  assert.equal(label([{ ...claim("v:interaction 0-10"), confidence: 0.7 }], "music 50-90"), "interaction");
  assert.equal(label([]), "multimodal_activity");
});

Deno.test("offsets may be times, and names in another case", () => {
  const rows: [unknown, unknown, number, number][] = [
    ["0:01", "0:02.5", 1000, 2500],
    ["00:00:01,5", "2 s", 1500, 2000],
    ["800ms", "2.25 seconds", 800, 2250],
  ];
  for (const [start, end, startMs, endMs] of rows) {
    const { start_offset_ms: _, end_offset_ms: __, ...rest } = CLAIM;
    const answered = parseMomentsAnswer(
      JSON.stringify({ Moments: { ...rest, StartOffsetMs: start, "End Offset ms": end } }),
      4000,
    );
    assert.ok(answered.ok, String(start));
    const [moment] = answered.moments;
    assert.deepEqual([moment?.start_offset_ms, moment?.end_offset_ms], [startMs, endMs]);
  }
});
