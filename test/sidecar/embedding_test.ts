import { deepEqual, equal, match, ok, rejects, throws } from "node:assert/strict";
import { joinedBytes } from "../../src/base/bytes.ts";
import { quietLog } from "../../src/base/log.ts";
import { Metrics } from "../../src/contract/metrics.ts";
import { realWorld } from "../../src/base/world.ts";
import {
  decodeEmbeddingResponse,
  EMBEDDING_HEADER_BYTES,
  embeddingRequestHeader,
} from "../../src/model/sidecars/embedding_protocol.ts";
import { cosineDistance, quantized } from "../../src/model/live/novelty.ts";
import { EmbeddingSidecar, EmbeddingUnavailable } from "../../src/remote/sidecars/embedding_sidecar.ts";
import { EmbeddingServer } from "../../src/sidecar/embedding/embedding_server.ts";
import { readEmbeddingSettings } from "../../src/sidecar/embedding/embedding_settings.ts";
import { describePicture, PICTURE_BYTES } from "../../src/sidecar/embedding/picture_descriptor.ts";
import { startReferenceEmbedding } from "../support/sidecars/reference_embedding.ts";
import { seededRandom } from "../support/seeded_random.ts";
import { CLIPS } from "../support/service.ts";
import { NEVER_ABORTED } from "../../src/base/wait.ts";

/** SERVICE_NOVELTY_REUSE_THRESHOLD. */
const THRESHOLD = 0.01;

function client(port: number) {
  const sidecar = new EmbeddingSidecar({
    address: { hostname: "127.0.0.1", port },
    timeoutMs: 30_000,
    world: realWorld(quietLog()),
    metrics: new Metrics(),
  });
  return {
    embed: (jpeg: Uint8Array) => sidecar.embed(jpeg, NEVER_ABORTED),
    [Symbol.dispose]: () => sidecar[Symbol.dispose](),
  };
}

/** A picture of a clip as a JPEG of a keyframe's quality, made by a filter of ffmpeg. */
function jpegOf(input: readonly string[], filter = "null", more: readonly string[] = []): Uint8Array {
  const { success, stdout, stderr } = new Deno.Command("ffmpeg", {
    args: [
      ...["-nostdin", "-v", "error", ...input, "-frames:v", "1", "-vf", filter, "-q:v", "5", ...more],
      ...["-f", "image2pipe", "-c:v", "mjpeg", "pipe:1"],
    ],
  }).outputSync();
  ok(success, new TextDecoder().decode(stderr));
  return stdout;
}

function frameAt(clip: string, seconds: number, filter?: string): Uint8Array {
  return jpegOf(["-ss", String(seconds), "-i", `${CLIPS}/${clip}.mp4`], filter);
}

function distance(one: Float32Array, other: Float32Array): number {
  return cosineDistance(quantized(one)!, quantized(other)!);
}

Deno.test("the real sidecar distinguishes similar pictures from others", async () => {
  await using sidecar = await startReferenceEmbedding();
  using novelty = client(sidecar.port);
  const bottle = await novelty.embed(frameAt("intel_bottle", 1));
  equal(bottle.length, 768);
  ok(Math.abs(Math.hypot(...bottle) - 1) < 1e-5);
  const near = async (what: string, jpeg: Uint8Array) => {
    const got = distance(bottle, await novelty.embed(jpeg));
    ok(got <= THRESHOLD, `${what}: ${got}`);
  };
  const far = async (what: string, jpeg: Uint8Array) => {
    const got = distance(bottle, await novelty.embed(jpeg));
    ok(got > 5 * THRESHOLD, `${what}: ${got}`);
  };
  equal(distance(bottle, await novelty.embed(frameAt("intel_bottle", 1))), 0);
  await near("half the size", frameAt("intel_bottle", 1, "scale=iw/2:ih/2"));
  await near("sensor noise", frameAt("intel_bottle", 1, "noise=alls=12:allf=t"));
  await near("a little brighter", frameAt("intel_bottle", 1, "eq=brightness=0.02"));
  await far("another place", frameAt("bbb480", 5));
  await far("a screen", frameAt("own_screenrec", 2));
  await far("upside down", frameAt("intel_bottle", 1, "vflip"));
  await far("mirrored", frameAt("intel_bottle", 1, "hflip"));
  await far("black", jpegOf(["-f", "lavfi", "-i", "color=black:s=640x360"]));
  equal(await sidecar.end(), 0);
});

Deno.test("pictures of every size, shape and kind of JPEG are described", async () => {
  await using sidecar = await startReferenceEmbedding();
  using novelty = client(sidecar.port);
  const pattern = (size: string) => ["-f", "lavfi", "-i", `testsrc2=s=${size}`];
  const whole = await novelty.embed(jpegOf(pattern("640x640")));
  for (const size of ["16x16", "1920x1080", "17x301", "64x64", "2560x1440"]) {
    equal((await novelty.embed(jpegOf(pattern(size)))).length, 768, size);
  }
  const grey = await novelty.embed(jpegOf(pattern("640x640"), "format=gray"));
  ok(distance(whole, grey) > THRESHOLD);
  const full = await novelty.embed(jpegOf(pattern("640x640"), "format=yuvj444p"));
  ok(distance(whole, full) <= THRESHOLD);
});

Deno.test("a damaged picture is refused, and the next one is described all the same", async () => {
  await using sidecar = await startReferenceEmbedding();
  const good = frameAt("bbb480", 2);
  const damaged: Record<string, Uint8Array> = {
    "no JPEG": new TextEncoder().encode("this is no picture at all"),
    "one byte": Uint8Array.of(0xff),
    "cut in the middle": good.subarray(0, good.length / 2),
    "zeros": new Uint8Array(5_000),
    "markers alone": Uint8Array.of(0xff, 0xd8, 0xff, 0xd9),
    "a PNG": Uint8Array.fromHex("89504e470d0a1a0a0000000d49484452"),
  };
  for (const [what, jpeg] of Object.entries(damaged)) {
    using novelty = client(sidecar.port);
    await rejects(novelty.embed(jpeg), (error: unknown) => {
      ok(error instanceof EmbeddingUnavailable, what);
      match(error.message, /refused: bad_request/, what);
      return true;
    });
    using next = client(sidecar.port);
    equal((await next.embed(good)).length, 768, what);
  }
});

Deno.test("a request that breaks the protocol is answered once and ends the connection", async () => {
  await using sidecar = await startReferenceEmbedding();
  const header = embeddingRequestHeader(10);
  for (
    const bad of [header.with(0, 0), header.with(4, 2), header.with(5, 1), embeddingRequestHeader(2 ** 31)]
  ) {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port: sidecar.port });
    await conn.write(bad);
    const answer = joinedBytes(...await Array.fromAsync(conn.readable));
    const { status, payloadBytes } = decodeEmbeddingResponse(answer.subarray(0, EMBEDDING_HEADER_BYTES));
    equal(status, "bad_request");
    equal(answer.length, EMBEDDING_HEADER_BYTES + payloadBytes);
  }
});

Deno.test("more pictures than may wait are refused as overloaded, and one that takes too long as late", async () => {
  const held = Promise.withResolvers<Uint8Array>();
  const abortedBy = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const decode = (_: Uint8Array, signal: AbortSignal) => Promise.race([held.promise, abortedBy(signal)]);
  const options = { world: realWorld(quietLog()), bindAddr: { hostname: "127.0.0.1", port: 0 } };
  const refusal = (novelty: ReturnType<typeof client>) =>
    novelty.embed(Uint8Array.of(1)).then(
      () => "described",
      (error: Error) => error.message.split(": ").at(-1),
    );
  {
    await using server = EmbeddingServer.listen({ ...options, decode, queue: 1, timeoutMs: 30_000 });
    using one = client(server.port);
    using two = client(server.port);
    using three = client(server.port);
    const first = [one, two, three].map((novelty) => refusal(novelty));
    equal(await Promise.race(first), "overloaded");
    held.resolve(new Uint8Array(PICTURE_BYTES));
    deepEqual((await Promise.all(first)).sort(), ["described", "described", "overloaded"]);
  }
  const late = (_: Uint8Array, signal: AbortSignal) => abortedBy(signal);
  await using server = EmbeddingServer.listen({ ...options, decode: late, queue: 1, timeoutMs: 10 });
  using novelty = client(server.port);
  equal(await refusal(novelty), "timeout");
});

Deno.test("a description is of length 1 for every picture, and its noise does not turn a flat one", () => {
  const random = seededRandom(37);
  const flat = (level: number) => new Uint8Array(PICTURE_BYTES).fill(level);
  const noisy = (level: number) => flat(level).map((value) => value + Math.floor(random() * 3) - 1);
  for (const level of [1, 60, 127, 128, 200, 254]) {
    const description = describePicture(flat(level));
    ok(description.every(Number.isFinite));
    ok(Math.abs(Math.hypot(...description) - 1) < 1e-5);
    const got = distance(description, describePicture(noisy(level)));
    ok(got <= THRESHOLD, `${level}: ${got}`);
  }
  ok(distance(describePicture(flat(0)), describePicture(flat(255))) > 0.5);
  throws(() => describePicture(new Uint8Array(5)), /unless it has 12288 bytes/);
});

Deno.test("settings have defaults, and every one that is wrong is named", () => {
  deepEqual(readEmbeddingSettings({}), {
    bindAddr: { hostname: "127.0.0.1", port: 7791 },
    queue: 8,
    timeoutMs: 1_500,
  });
  throws(
    () => readEmbeddingSettings({ EMBEDDING_SIDECAR_BIND_ADDR: "x", EMBEDDING_SIDECAR_QUEUE: "-1" }),
    /EMBEDDING_SIDECAR_BIND_ADDR must be host:port.*\nEMBEDDING_SIDECAR_QUEUE must be an integer from 0/,
  );
});
