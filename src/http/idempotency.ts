/** Requests with the header Idempotency-Key: reads it, and answers again what was answered before. See
 * docs/api.md#idempotency-keys.
 */

import type { AnswerAgain, KeptBody } from "../flow/idempotency.ts";
import { FirstRequest } from "../flow/idempotency.ts";
import { checkIdempotencyKey } from "../model/idempotency_key.ts";
import { jsonChunks, jsonText } from "./answers/reply.ts";
import type { RouteCall } from "./route/call.ts";
import type { AnswerFields, Once, Route } from "./route/route.ts";

/**
 * The answer of `route` to a request with `key`: kept when it is a success, after `synced`. A refusal frees
 * the key. Throws what the handler throws, and the refusals of the key.
 */
export async function answerOnce(
  route: Route & { readonly once: Once },
  key: string,
  call: RouteCall,
  synced: () => Promise<void>,
): Promise<Response> {
  checkIdempotencyKey(key);
  let first: FirstRequest | undefined;
  const begin = async (body: string, fields: unknown) => {
    const begun = await call.use.idempotency.begin(call.caller, {
      key,
      method: route.method,
      path: call.request.path,
      body,
      runIds: runIdsOf(call, fields),
      kinds: route.once.kinds,
      rebuild: route.once.rebuild,
    });
    if (!(begun instanceof FirstRequest)) throw new AnsweredBefore(begun);
    first = begun;
  };
  let response: Response;
  try {
    response = await route.handle({ ...call, begin });
  } catch (error) {
    if (error instanceof AnsweredBefore) return await answerAgain(route.once, call, error.answer);
    first?.free();
    throw error;
  }
  try {
    await synced();
  } catch (error) {
    first?.interrupt();
    throw error;
  }
  return first === undefined ? response : await kept(first, route.once, response);
}

/** Thrown by `begin` through the handler, which does no work then. */
class AnsweredBefore extends Error {
  override readonly name = "AnsweredBefore";

  constructor(readonly answer: AnswerAgain) {
    super("answered before");
  }
}

async function kept(first: FirstRequest, { secret }: Once, response: Response): Promise<Response> {
  const { status, body } = response;
  if (secret === undefined) {
    return await jsonChunks(texts(await first.keep(status, chunksOf(body!))), { status });
  }
  const text = await response.text();
  await drained(await first.keep(status, onePiece(withField(text, secret.field, null))));
  return jsonText(text, status);
}

async function answerAgain(
  { secret }: Once,
  call: RouteCall,
  { status, body }: AnswerAgain,
): Promise<Response> {
  const response = secret === undefined
    ? await jsonChunks(texts(body), { status })
    : jsonText(await withSecret(call, secret, body), status);
  response.headers.set("idempotency-replayed", "true");
  return response;
}

async function withSecret(
  call: RouteCall,
  { field, derive }: NonNullable<Once["secret"]>,
  body: KeptBody,
): Promise<string> {
  let text = "";
  for await (const piece of texts(body)) text += piece;
  return withField(text, field, derive(call, JSON.parse(text) as AnswerFields));
}

function withField(json: string, field: string, value: string | null): string {
  return JSON.stringify({ ...JSON.parse(json), [field]: value });
}

interface Named {
  readonly run_id?: unknown;
}

/**
 * The run of the path, and those that the body names: when one of them is deleted, the answer goes with it.
 */
function runIdsOf(call: RouteCall, fields: unknown): string[] {
  const { run_id: one, requests = [] } = fields as Named & { requests?: (Named | null)[] };
  // The items of a list that is too long are not checked: they may be anything.
  const all = [call.request.param("id"), one, ...requests.map((item) => item?.run_id)];
  return [...new Set(all.filter((runId) => typeof runId === "string"))];
}

async function* texts(pieces: KeptBody): AsyncIterable<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const piece of pieces) yield decoder.decode(piece, { stream: true });
}

async function* chunksOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): KeptBody {
  yield* body;
}

async function* onePiece(text: string): KeptBody {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

async function drained(pieces: KeptBody): Promise<void> {
  for await (const _ of pieces);
}
