import { deepEqual, equal, throws } from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import { cropFault, croppedFrame, fullFrame, type Region } from "../../../src/model/frames/coordinates.ts";

/** "x,y,width,height" */
function region(text: string): Region {
  const [x, y, width, height] = text.split(",").map(Number);
  return { x: x!, y: y!, width: width!, height: height! };
}

/** Checks a request: `expected` is the resolved region, or "422". */
function check(size: string, requested: string, expected: string) {
  const [width, height] = size.split("x").map(Number);
  const source = { width: width!, height: height! };
  const message = `${requested} of ${size}`;
  equal(cropFault(region(requested)), null, message);
  if (expected === "422") {
    throws(() => croppedFrame(source, region(requested)), (error) => {
      deepEqual(error instanceof Refusal && error.details[0]!.field, "source_uri", message);
      return true;
    });
    return;
  }
  const resolved = region(expected);
  deepEqual(croppedFrame(source, region(requested)), {
    source_extent: source,
    requested_region: region(requested),
    resolved_region: resolved,
    analysis_extent: { width: resolved.width, height: resolved.height },
  }, message);
}

Deno.test("a crop resolves to even pixels, rounding down", () => {
  check("1920x1080", "0,0,1,1", "0,0,1920,1080");
  check("1920x1080", "0.5,0.5,0.5,0.5", "960,540,960,540");
  check("1920x1080", "0.25,0.25,0.5,0.5", "480,270,960,540");
  check("1058x658", "0.5,0.5,0.5,0.5", "528,328,528,328");
  check("100x100", "0.333,0.333,0.333,0.333", "32,32,32,32");
  check("640x480", "0,0,0.01,0.01", "0,0,6,4");
  check("640x480", "0.1,0.2,0.3,0.4", "64,96,192,192");
  check("101x77", "0,0,1,1", "0,0,100,76");
  check("101x77", "0.5,0.5,0.5,0.5", "50,38,50,38");
  check("2x2", "0,0,1,1", "0,0,2,2");
  check("3x3", "0,0,1,1", "0,0,2,2");
});

Deno.test("a crop never exceeds the edge, even where its fractions sum to a little more than 1", () => {
  check("20000x20000", "0.5,0.5,0.5001,0.5001", "10000,10000,10000,10000");
  check("20001x20001", "0.9,0.9,0.1001,0.1001", "18000,18000,2000,2000");
});

Deno.test("a crop below 2x2 pixels is refused", () => {
  check("640x480", "0,0,0.003,1", "422");
  check("640x480", "0,0,1,0.004", "422");
  check("640x480", "1,0,0.00001,1", "422");
  check("1x100", "0,0,1,1", "422");
  check("100x1", "0,0,1,1", "422");
});

Deno.test("the whole picture is the region from 0 to 1", () => {
  deepEqual(fullFrame(854, 480), {
    source_extent: { width: 854, height: 480 },
    requested_region: { x: 0, y: 0, width: 1, height: 1 },
    resolved_region: { x: 0, y: 0, width: 854, height: 480 },
    analysis_extent: { width: 854, height: 480 },
  });
});

Deno.test("a requested crop lies within the picture", () => {
  const good = [
    "0,0,1,1",
    "0.5,0.5,0.5,0.5",
    "0.9,0.9,0.10009,0.1",
    "0,0,0.0001,0.0001",
    "1,1,0.0001,0.0001",
  ];
  for (const text of good) equal(cropFault(region(text)), null, text);
  const bad: [string, RegExp][] = [
    ["NaN,0,1,1", /finite/],
    ["0,0,Infinity,1", /finite/],
    ["-0.1,0,1,1", /x and y/],
    ["0,1.1,1,1", /x and y/],
    ["0,0,0,1", /above 0/],
    ["0,0,1,-1", /above 0/],
    ["0.5,0,0.5002,1", /x \+ width/],
    ["0,0.5,1,0.6", /y \+ height/],
  ];
  for (const [text, expected] of bad) equal(expected.test(cropFault(region(text)) ?? ""), true, text);
});
