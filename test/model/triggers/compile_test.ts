import assert from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import { SCALAR_KINDS, type Signal } from "../../../src/model/triggers/program.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { stateSlots } from "../../../src/model/triggers/validate.ts";
import { DOCK_SOURCE } from "../../support/policy_fixtures.ts";

const DOCK_ENTRY = `# who comes to the dock\n${DOCK_SOURCE}\n`;

/** The faults of a source, without the field that is always the same. */
function faultsOf(source: string): string[] {
  try {
    compileTrigger(source);
  } catch (error) {
    assert.ok(error instanceof Refusal && error.status === 422, String(error));
    assert.ok(error.details.every(({ field }) => field === "source"));
    return error.details.map(({ message }) => message);
  }
  return [];
}

/** The opcodes of a program with these lines between its header and its end, with their operands. */
function codeOf(lines: string): string {
  const { instructions } = compileTrigger(`trigger t version 1\n${lines}\nend`);
  return instructions.map((one) => Object.values(one).map((value) => JSON.stringify(value)).join(" ")).join(
    "\n",
  )
    .replaceAll('"', "");
}

Deno.test("the worked source compiles to the worked program, word for word", () => {
  const program = compileTrigger(DOCK_ENTRY);
  assert.equal(
    JSON.stringify(program),
    `{"isa_version":1,"program_id":"dock-entry","version":3,"instructions":[
{"op":"load","signal":{"kind":"motion_score"}},
{"op":"constant","value":0.5},
{"op":"greater_or_equal"},
{"op":"sustain_frames","slot":0,"frames":2},
{"op":"rising_edge","slot":1},
{"op":"cooldown_ms","slot":2,"duration_ms":4000},
{"op":"jump_if_false","target":10},
{"op":"emit","event_type":"dock_entry"},
{"op":"capture","kind":"keyframe","before_ms":0,"after_ms":0},
{"op":"notify","channel":"webhook"},
{"op":"halt"}]}`.replaceAll("\n", ""),
  );
  assert.equal(program.instructions.length, 11);
  assert.equal(stateSlots(program), 3);
});

Deno.test("conditions are joined, and slots are counted over conditions, edge and cooldown", () => {
  const check = (lines: string, code: string) =>
    assert.equal(codeOf(lines), code.replaceAll(/\n +/g, "\n").trim());
  const load = (kind: string) => `load {kind:${kind}}`;
  check(
    "when motion_score > 1\nemit e",
    `${load("motion_score")}
     constant 1
     greater_than
     jump_if_false 5
     emit e
     halt`,
  );
  check(
    "emit e\nnotify local_output\ncooldown 7\nedge rising\nedge rising\ncooldown 90ms\n" +
      "and motion_score < 0.5 for 3 frames\nwhen confidence <= -1e-3\nand novelty_score == .5 for 1 frames\n" +
      "capture clip 1000ms 2000\nnotify webhook",
    `${load("motion_score")}
     constant 0.5
     less_than
     sustain_frames 0 3
     ${load("confidence")}
     constant -0.001
     less_or_equal
     and
     ${load("novelty_score")}
     constant 0.5
     equal
     sustain_frames 1 1
     and
     rising_edge 2
     cooldown_ms 3 90
     jump_if_false 20
     emit e
     notify local_output
     capture clip 1000 2000
     notify webhook
     halt`,
  );
});

Deno.test("every signal can be written, and stands for its object of the program", () => {
  const check = (text: string, signal: Signal) => {
    const { instructions } = compileTrigger(`trigger t version 1\nwhen ${text} > 0\nemit e\nend`);
    assert.deepEqual(instructions[0], { op: "load", signal });
  };
  for (const kind of SCALAR_KINDS) check(kind, { kind });
  check("object_count:person", { kind: "object_count", label: "person", zone: null });
  check("object_count:person@bay", { kind: "object_count", label: "person", zone: "bay" });
  check("object_count:a:b.c@d-e_f", { kind: "object_count", label: "a:b.c", zone: "d-e_f" });
  check("minimum_distance_mm:a,b", { kind: "minimum_distance_mm", left: "a", right: "b" });
  check("time_to_collision_ms:car:1,wall", { kind: "time_to_collision_ms", left: "car:1", right: "wall" });
  check("dwell_ms:person@bay", { kind: "dwell_ms", label: "person", zone: "bay" });
  check("audio_event:glass", { kind: "audio_event_confidence", label: "glass" });
  check(`audio_event:${"x".repeat(128)}`, { kind: "audio_event_confidence", label: "x".repeat(128) });
});

Deno.test("comments, blank lines, line ends and blanks of any kind change nothing", () => {
  const plain = compileTrigger(DOCK_ENTRY);
  const check = (source: string) => assert.deepEqual(compileTrigger(source), plain, JSON.stringify(source));
  check(DOCK_ENTRY.replaceAll("\n", "\r\n"));
  check(DOCK_ENTRY.trimEnd());
  check(DOCK_ENTRY.replaceAll(" ", "\t  "));
  check(DOCK_ENTRY.replaceAll("\n", "  # a comment, even with end\n\n#\n"));
  check(DOCK_ENTRY.replace("frames", "frames#directly"));
  check(`\uFEFF${DOCK_ENTRY}# the end\n   \n`);
  check(DOCK_ENTRY.replace("4000ms", "4000").replace("0.5", "+5e-1").replace("version 3", "version 003"));
  check(DOCK_ENTRY.replace("edge rising\n", "").replace("trigger", "edge rising\ntrigger"));
});

Deno.test("numbers are decimal with sign and exponent, and finite when they are 32 bits long", () => {
  const check = (text: string, value: number) => {
    const { instructions } = compileTrigger(`trigger t version 1\nwhen confidence > ${text}\nemit e\nend`);
    assert.deepEqual(instructions[1], { op: "constant", value });
  };
  check("1", 1);
  check("-1.5", -1.5);
  check("+.25", 0.25);
  check("3.", 3);
  check("-0", 0);
  check("0.1", 0.1);
  check("1E3", 1000);
  check("2.5e-7", 2.5e-7);
  check("1e-400", 0);
  check("3.4028235e38", 3.4028235e38);
  for (const text of ["1e39", "-1e39", "1e999", "3.4028236e38"]) {
    const [fault] = faultsOf(`trigger t version 1\nwhen confidence > ${text}\nemit e\nend`);
    assert.match(fault!, /^line 2: column 19: value must be finite as a 32-bit float: got /, text);
  }
  for (const text of ["1,5", "0x10", "NaN", "Infinity", "1e", "--1", ".", "1_000", "½", "one"]) {
    const [fault] = faultsOf(`trigger t version 1\nwhen confidence > ${text}\nemit e\nend`);
    assert.equal(fault, `line 2: column 19: expected a number: got "${text}"`);
  }
});

Deno.test("an error names line and column, the rule, the given text and a suggestion", () => {
  const check = (line: string, fault: string) => {
    assert.deepEqual(faultsOf(`trigger t version 1\nwhen confidence > 0\nemit e\n  ${line}\nend`), [
      `line 4: ${fault}`,
    ]);
  };
  const names = '1 to 128 letters, digits or any of "-_.:"';
  check("wehn confidence > 0", 'column 3: unknown keyword "wehn", did you mean "when"?');
  check("When confidence > 0", 'column 3: unknown keyword "When", did you mean "when"?');
  check("CAPTURE keyframe", 'column 3: unknown keyword "CAPTURE", did you mean "capture"?');
  check("notfy webhook", 'column 3: unknown keyword "notfy", did you mean "notify"?');
  check("or confidence > 0", 'column 3: unknown keyword "or"');
  check("supercalifragilistic", 'column 3: unknown keyword "supercalifragilistic"');
  check("when", "column 7: the line ends where a signal is expected");
  check("when   # confidence > 0", "column 7: the line ends where a signal is expected");
  check("when motion_scor > 0", 'column 8: unknown signal "motion_scor", did you mean "motion_score"?');
  check("when motion > 0", 'column 8: unknown signal "motion", did you mean "motion_score"?');
  check(
    "when audio_event_confidence:x > 0",
    'column 8: unknown signal "audio_event_confidence", did you mean "audio_event"?',
  );
  check(
    "when objectcount:person > 0",
    'column 8: unknown signal "objectcount", did you mean "object_count"?',
  );
  check("when colour > 0", 'column 8: unknown signal "colour"');
  check("when constructor > 0", 'column 8: unknown signal "constructor"');
  check("when motion_score:x > 0", 'column 8: motion_score stands alone, without ":"');
  for (const text of ["", ":", ":@bay", ":person@", ":a@b@c", ":a,b"]) {
    check(
      `when object_count${text} > 0`,
      `column 8: object_count is written object_count:LABEL or object_count:LABEL@ZONE, with names of ${names}`,
    );
  }
  for (const text of ["", ":person", ":person@", ":@bay", ":a,b"]) {
    check(
      `when dwell_ms${text} > 0`,
      `column 8: dwell_ms is written dwell_ms:LABEL@ZONE, with names of ${names}`,
    );
  }
  for (const text of ["", ":a", ":a,", ":a,b,c", ":a@b"]) {
    check(
      `when minimum_distance_mm${text} > 0`,
      `column 8: minimum_distance_mm is written minimum_distance_mm:LEFT,RIGHT, with names of ${names}`,
    );
  }
  check("when confidence>0", 'column 8: fields are separated by blanks: write "confidence > 0"');
  check("when confidence>=", 'column 8: fields are separated by blanks: write "confidence >="');
  check("when confidence = 0", 'column 19: expected one of > >= < <= ==: got "=", did you mean "=="?');
  check("when confidence => 0", 'column 19: expected one of > >= < <= ==: got "=>", did you mean ">="?');
  check("when confidence != 0", 'column 19: expected one of > >= < <= ==: got "!="');
  check("when confidence", "column 18: the line ends where a comparison is expected");
  check("when confidence >", "column 20: the line ends where a number is expected");
  check("when confidence > 0 fro 2 frames", 'column 23: expected "for": got "fro", did you mean "for"?');
  check("when confidence > 0 for", "column 26: the line ends where a number of frames is expected");
  check(
    "when confidence > 0 for two frames",
    'column 27: expected a number of frames, a whole number: got "two"',
  );
  check(
    "when confidence > 0 for -2 frames",
    'column 27: expected a number of frames, a whole number: got "-2"',
  );
  check(
    "when confidence > 0 for 1 frame",
    'column 29: expected "frames": got "frame", did you mean "frames"?',
  );
  check("when confidence > 0 for 2", 'column 28: the line ends where "frames" is expected');
  check("when confidence > 0 for 2 frames long", 'column 36: nothing is expected here: got "long"');
  check("when confidence > 0 for 0 frames", "column 27: frames must be from 1 to 10000: got 0");
  check("when confidence > 0 for 10001 frames", "column 27: frames must be from 1 to 10000: got 10001");
  check("edge", 'column 7: the line ends where "rising" is expected');
  check("edge falling", 'column 8: expected "rising": got "falling"');
  check("edge rising now", 'column 15: nothing is expected here: got "now"');
  check("cooldown", "column 11: the line ends where a duration is expected");
  check(
    "cooldown 4s",
    'column 12: expected a duration in milliseconds such as "4000ms": got "4s", did you mean "4000ms"?',
  );
  check("cooldown 4.5ms", 'column 12: expected a duration, a whole number: got "4.5ms"');
  check("cooldown 4 ms", 'column 14: the unit follows without a blank: write "4ms"');
  check("cooldown ms", 'column 12: expected a duration, a whole number: got "ms"');
  check("cooldown 86400001", "column 12: duration_ms must be from 0 to 86400000: got 86400001");
  check(
    "cooldown 9007199254740993ms",
    'column 12: a duration must be at most 9007199254740991: got "9007199254740993ms"',
  );
  check("emit f", "column 3: a trigger has exactly one emit, and line 3 is one");
  check("capture", "column 10: the line ends where what to capture is expected");
  check("capture frame", 'column 11: expected "keyframe" or "clip": got "frame"');
  check(
    "capture keyframes",
    'column 11: expected "keyframe" or "clip": got "keyframes", did you mean "keyframe"?',
  );
  check("capture keyframe 0 0", 'column 20: nothing is expected here: got "0"');
  check("capture clip 5", "column 17: the line ends where a duration after is expected");
  check(
    "capture clip 30001 30000ms",
    "column 16: before_ms and after_ms together must be from 0 to 60000: got 60001",
  );
  check("notify", "column 9: the line ends where a channel is expected");
  check("notify web", 'column 10: expected "webhook" or "local_output": got "web", did you mean "webhook"?');
  check("trigger u version 2", "column 3: a source has exactly one header, and line 1 is one");
  check("end of it", 'column 7: nothing is expected here: got "of"');
});

Deno.test("missing and repeated parts of a source are reported with a position", () => {
  const check = (lines: string[], ...faults: string[]) =>
    assert.deepEqual(faultsOf(lines.join("\n")), faults);
  const [header, when, emit] = ["trigger t version 1", "when confidence > 0", "emit e"];
  check([header, when, emit, "end", "", "# fine"]);
  check([""], 'line 1: column 1: the last line must be "end"');
  check([header, when, emit], 'line 3: column 7: the last line must be "end"');
  check([header, when, emit, "# end"], 'line 4: column 1: the last line must be "end"');
  check([emit, "end"], 'line 2: column 1: there is no line "trigger ID version NUMBER"');
  check([header, emit, "end"], 'line 3: column 1: there is no condition: "when SIGNAL >= NUMBER"');
  check([header, when, "end"], 'line 3: column 1: there is no line "emit EVENT_TYPE"');
  check([header, when, emit, "end", "end"], "line 5: column 1: nothing may follow end, which is line 4");
  check([header, when, emit, "end", " x"], "line 5: column 2: nothing may follow end, which is line 4");
  check(
    [when, header, emit, "end"],
    'line 1: column 1: a condition needs the header before it: "trigger ID version NUMBER"',
  );
  check(["trigger t version 0", when, emit, "end"], "line 1: column 19: version must be at least 1: got 0");
  check(
    ["trigger t version 1.0", when],
    'line 1: column 19: expected a version, a whole number: got "1.0"',
  );
  check(
    ["trigger dock/entry version 1", when],
    'line 1: column 9: a program id must be 1 to 128 letters, digits or any of "-_.:": got "dock/entry"',
  );
  check(
    [header, when, `emit ${"é".repeat(200)}`],
    `line 3: column 6: an event type must be 1 to 128 letters, digits or any of "-_.:": got "${
      "é".repeat(80)
    }…"`,
  );
});

Deno.test("every faulty line is named, up to sixteen of them", () => {
  const lines = ["trigger t version 1", "wen confidence > 0", "when confidence > x", "emit e", "ende"];
  assert.deepEqual(faultsOf(lines.join("\n")).map((fault) => fault.slice(0, 17)), [
    "line 2: column 1:",
    "line 3: column 19",
    "line 5: column 1:",
  ]);
  assert.equal(faultsOf("x\n".repeat(30_000)).length, 16);
});

Deno.test("a source may have 64 KiB, 64 instructions, 16 slots and 8 actions", () => {
  const source = (lines: string[]) => ["trigger t version 1", ...lines, "end"].join("\n");
  const conditions = (count: number, more = "") => Array(count).fill(`when confidence > 0${more}`);
  const notify = (count: number) => Array(count).fill("notify webhook");
  const check = (lines: string[], fault?: string) =>
    assert.deepEqual(faultsOf(source(lines)), fault ? [fault] : []);
  // 15 conditions are 59 instructions, the jump, the emit and halt three more.
  check([...conditions(15), "emit e", ...notify(2)]);
  check(
    [...conditions(15), "emit e", ...notify(3)],
    "line 20: column 1: a program has 1 to 64 instructions: got 65",
  );
  check([...conditions(1), "emit e", ...notify(7)]);
  check(
    [...conditions(1), "emit e", ...notify(8)],
    "line 11: column 1: a program has at most 8 actions: got 9",
  );
  // 12 sustained conditions are 59 instructions with 12 slots: conditions run out of instructions before
  // slots.
  check([...conditions(12, " for 2 frames"), "edge rising", "cooldown 1", "emit e"]);
  const padding = (bytes: number) => {
    const rest = source([...conditions(1), "emit e"]);
    return `${rest}#${"x".repeat(bytes - rest.length - 1)}`;
  };
  assert.deepEqual(faultsOf(padding(65_536)), []);
  assert.deepEqual(faultsOf(padding(65_537)), ["must have at most 65536 bytes: got 65537"]);
  assert.deepEqual(faultsOf("é".repeat(32_769)), ["must have at most 65536 bytes: got 65538"]);
});

Deno.test("no text makes the compiler do anything but compile or refuse", () => {
  const words = [
    ..."trigger version when and edge rising cooldown emit capture keyframe clip notify webhook end for frames"
      .split(" "),
    ..."motion_score object_count:a@b dwell_ms: 1 0.5 -3 1e99 4000ms > >= == # , @ : \u0000 \u2028 é 😀 __proto__"
      .split(" "),
  ];
  const random = seededRandom(12);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 2_000; round++) {
    const text = Array.from({ length: below(40) }, () => words[below(words.length)] + (below(4) ? " " : "\n"))
      .join("");
    for (const fault of faultsOf(text)) assert.match(fault, /^line \d+: column \d+: \S/);
  }
});
