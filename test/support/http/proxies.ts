/** The proxies of deploy/ in front of a service of a test: the shipped files with the addresses and deadlines
 * of the test.
 */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { exists } from "../media.ts";
import { type Need, programOnPath } from "../needs.ts";
import { KEY_A, PROJECT_ROOT, type TestService } from "../service.ts";
import { until } from "../until.ts";
import { TEST_ROOT, TEST_TLS } from "./tls_server.ts";

const NGINX = programOnPath("nginx");
const CADDY = programOnPath("caddy");

export type ProxyName = "nginx" | "caddy";

export const PROXIES: readonly { readonly name: ProxyName; readonly need: Need }[] = [
  { name: "nginx", need: { isMet: () => NGINX !== null, reason: "nginx is not installed" } },
  { name: "caddy", need: { isMet: () => CADDY !== null, reason: "Caddy is not installed" } },
];

/** What a test changes in a shipped file: each left text must stand there exactly once. */
export type Changes = readonly (readonly [shipped: string, ofTest: string])[];

export interface Proxy extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** The service as its callers see it through the proxy; helpers that take a service take it too. */
  through<T extends TestService>(test: T): T;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** A connection with TLS on which bytes are sent by hand. */
  connect(): Promise<Deno.TlsConn>;
}

/** Starts a proxy with its shipped configuration in front of `test`, on loopback. */
export async function startProxy(
  name: ProxyName,
  test: Pick<TestService, "url">,
  changes: Changes = [],
): Promise<Proxy> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-proxy-" }));
  Deno.writeTextFileSync(join(folder, "video.pem"), TEST_TLS.cert);
  Deno.writeTextFileSync(join(folder, "video.key"), TEST_TLS.key);
  const port = freePort();
  const program = { nginx, caddy }[name](folder, port, new URL(test.url).host, changes);
  const child = new Deno.Command(program.path, {
    args: [...program.args],
    env: { HOME: folder },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let hasEnded = false;
  const ended = child.status.then(() => void (hasEnded = true));
  const log = new Response(child.stderr).text();
  const client = Deno.createHttpClient({ caCerts: [TEST_ROOT] });
  const proxy: Proxy = {
    port,
    url: `https://127.0.0.1:${port}`,
    fetch: (path, init) => fetch(`${proxy.url}${path}`, { ...init, client }),
    connect: () => Deno.connectTls({ hostname: "127.0.0.1", port, caCerts: [TEST_ROOT] }),
    through: (test) => through(test, proxy),
    async [Symbol.asyncDispose]() {
      client.close();
      if (!hasEnded) child.kill("SIGTERM");
      await Promise.all([ended, log]);
      Deno.removeSync(folder, { recursive: true });
    },
  };
  const isUp = () => proxy.fetch("/v1/health").then((answer) => answer.text()).then(() => true, () => false);
  await until(`${name} listens`, async () => {
    if (hasEnded) throw new Error(`${name} has ended: ${await log}`);
    return await isUp();
  });
  return proxy;
}

type Program = { readonly path: string; readonly args: readonly string[] };

function nginx(folder: string, port: number, service: string, changes: Changes): Program {
  const inner = freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((part) => `${part}_temp_path ${join(folder, part)};`).join(" ");
  const module = join(dirname(NGINX!), "..", "lib", "nginx", "modules", "ngx_stream_module.so");
  const config = changed(join(PROJECT_ROOT, "deploy", "nginx.conf"), [
    ["include /etc/nginx/modules-enabled/*.conf;", exists(module) ? `load_module ${module};` : ""],
    ["user www-data;", Deno.uid() === 0 ? "user root;" : ""],
    ["worker_processes auto;", "worker_processes 1; daemon off;"],
    ["/run/nginx.pid", join(folder, "nginx.pid")],
    ["/var/log/nginx/error.log", "stderr"],
    ["listen 443;", `listen 127.0.0.1:${port};`],
    ["listen [::]:443;", ""],
    ["proxy_pass 127.0.0.1:8443;", `proxy_pass 127.0.0.1:${inner};`],
    ["http {", `http { ${temporary}`],
    ["listen 127.0.0.1:8443", `listen 127.0.0.1:${inner}`],
    ["server 127.0.0.1:8080;", `server ${service};`],
    ["/etc/ssl/video.pem", join(folder, "video.pem")],
    ["/etc/ssl/private/video.key", join(folder, "video.key")],
    ...changes,
  ]);
  Deno.writeTextFileSync(join(folder, "nginx.conf"), config);
  return { path: NGINX!, args: ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")] };
}

function caddy(folder: string, port: number, service: string, changes: Changes): Program {
  const config = changed(join(PROJECT_ROOT, "deploy", "Caddyfile"), [
    ["admin off", "admin off\n\tauto_https off"],
    ["\nvideo.example.org {", `\nhttps://127.0.0.1:${port} {\n\tbind 127.0.0.1`],
    ["reverse_proxy 127.0.0.1:8080", `reverse_proxy ${service}`],
    ["/etc/ssl/video.pem", join(folder, "video.pem")],
    ["/etc/ssl/private/video.key", join(folder, "video.key")],
    ...changes,
  ]);
  Deno.writeTextFileSync(join(folder, "Caddyfile"), config);
  return { path: CADDY!, args: ["run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"] };
}

function changed(path: string, changes: Changes): string {
  return changes.reduce((text, [shipped, ofTest]) => {
    assert.equal(text.split(shipped).length, 2, `${path} has "${shipped}" once`);
    return text.replace(shipped, () => ofTest);
  }, Deno.readTextFileSync(path));
}

function through<T extends TestService>(test: T, proxy: Proxy): T {
  const send: TestService["send"] = async (path, init) => {
    const response = await proxy.fetch(path, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
    const json = isJson && text !== "" ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  };
  return Object.create(test, {
    url: { value: proxy.url },
    send: { value: send },
    call: {
      value: ((method, path, body, key = KEY_A) =>
        send(path, {
          method,
          headers: { ...(key !== null && { "x-api-key": key }), "content-type": "application/json" },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        })) satisfies TestService["call"],
    },
  });
}

/**
 * A free port, below those that the system gives to connections and to listeners that ask for any: it is
 * still free when the proxy takes it.
 */
function freePort(): number {
  for (;;) {
    try {
      using listener = Deno.listen({
        hostname: "127.0.0.1",
        port: 10_000 + Math.floor(Math.random() * 20_000),
      });
      return listener.addr.port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
