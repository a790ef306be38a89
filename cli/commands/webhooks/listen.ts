/** `webhooks listen`: receives deliveries on this machine, checks their signatures and prints them. */

import { CliError } from "../../failure.ts";
import { visible } from "../../output/visible.ts";
import type { Handler, Session } from "../../session.ts";
import { eventLine } from "../reading.ts";
import { register } from "./webhooks.ts";

/** The server sends no event of more. */
const BODY_BYTES_MAX = 2 * 1024 * 1024;

export const listen: Handler = async (session, _args, { run, secret, port = 0, host, publicUrl, events }) => {
  if ((run === undefined) === (secret === undefined)) {
    throw new CliError(
      "usage",
      "give either --run, to register a webhook, or --secret of one that is registered",
    );
  }
  if (secret !== undefined && !/^(?:[0-9a-f]{2})+$/i.test(secret)) {
    throw new CliError("usage", "--secret must be the hex digits of a signing_secret");
  }
  const { out, signal, client } = session;
  // A delivery may arrive before the answer of the registration is here.
  const signing = Promise.withResolvers<string>();
  const server = serve({ host, port }, (request) => receive(session, request, signing.promise));
  const address = server.addr as Deno.NetAddr;
  const shownHost = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname;
  const url = publicUrl ?? `http://${shownHost}:${address.port}/`;
  let webhookId: string | undefined;
  try {
    if (secret !== undefined) signing.resolve(secret);
    else {
      const hook = await register(session, run, url, { events });
      webhookId = hook.webhook_id;
      signing.resolve(hook.signing_secret);
    }
    out.note(
      `listening on http://${shownHost}:${address.port}/` + (webhookId ? ` for ${webhookId} of ${run}` : ""),
    );
    await new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason), { once: true })
    );
  } finally {
    signing.promise.catch(() => {});
    signing.reject(signal.reason);
    if (webhookId) {
      await (await client()).deleteWebhook(run, webhookId).then(
        () => out.note(`${webhookId} is removed`),
        () => out.warn(`${webhookId} could not be removed; \`webhooks rm ${run} ${webhookId}\` does it`),
      );
    }
    await server.shutdown();
  }
};

function serve(
  { host, port }: { host: string; port: number },
  handler: (request: Request) => Promise<Response>,
): Deno.HttpServer {
  try {
    return Deno.serve({ hostname: host, port, onListen: () => {} }, handler);
  } catch (error) {
    throw new CliError("failed", `cannot listen on ${host}:${port}: ${(error as Error).message}`);
  }
}

/** 204 for a genuine delivery, 401 for any other. */
async function receive(session: Session, request: Request, secret: Promise<string>): Promise<Response> {
  const { out } = session;
  if (request.method !== "POST") return new Response(null, { status: 405 });
  // The server sends a length always.
  const length = Number(request.headers.get("content-length") ?? BODY_BYTES_MAX + 1);
  if (length > BODY_BYTES_MAX) return new Response(null, { status: 413 });
  const body = await request.text();
  const { verifyWebhook } = await import("../../../client/mod.ts");
  const isGenuine = await verifyWebhook(request.headers, body, await secret);
  if (!isGenuine) {
    out.warn("a request without a genuine signature was refused");
    return new Response(null, { status: 401 });
  }
  const { id, sequence: seq, pts_ms, type, data: payload } = JSON.parse(body);
  if (out.isJson) out.json({ id, seq, pts_ms, type, payload, is_genuine: true });
  else if (out.isQuiet) out.line(visible(String(id)));
  else {
    const kind = String(type).replace(/^dev\.service\.timeline\./, "");
    out.line(`${out.paint.green("genuine")}  ${eventLine(session, { seq, pts_ms, kind, payload })}`);
  }
  out.flush();
  return new Response(null, { status: 204 });
}
