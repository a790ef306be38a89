/** A server on loopback that answers as a test says, one answer after the other, and keeps what was asked. */

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** An answer, or "hang" for none until the client has gone. */
export type Scripted = Response | "hang";

export interface ScriptedService extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
}

/** Starts a service that answers by script: `answer` gets the number of the request from 0. */
export function startScripted(
  answer: (index: number, asked: Asked) => Scripted | Promise<Scripted>,
): ScriptedService {
  const asked: Asked[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    const one = { method, path: pathname + search, headers, body: await request.text() };
    const response = await answer(asked.push(one) - 1, one);
    if (response !== "hang") return response;
    await new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()));
    return new Response();
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** The error envelope of the service. */
export function refusal(
  status: number,
  code: string,
  { headers = {}, details = [], message = "No." }: {
    headers?: Record<string, string>;
    details?: { field: string; message: string }[];
    message?: string;
  } = {},
): Response {
  const error = { code, message, request_id: "req-0000000000000007", details };
  return Response.json({ error }, { status, headers });
}

/** What the call rejects with; fails where it does not. */
export async function rejection(call: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await call;
  } catch (error) {
    return error;
  }
  throw new Error(`resolved with ${JSON.stringify(value)}`);
}
