/** A small S3 server for tests: it keeps objects in memory and checks the signature of every request by
 * itself.
 */

import { createHash, createHmac } from "node:crypto";

export const S3_KEYS = { accessKeyId: "AKIATEST", secretAccessKey: "a-secret/with+signs" } as const;
const REGION = "eu-test-1";

export class S3Server implements AsyncDisposable {
  readonly objects = new Map<string, Uint8Array>();
  /** How many of the next requests are answered with 503. */
  faults = 0;
  requests = 0;
  /** Stands for another server: the answer with status 200 to whatever is asked. */
  body: string | null = null;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(readonly bucket = "backups", readonly pageKeys = 4) {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  get place() {
    return { endpoint: this.endpoint, region: REGION, bucket: this.bucket, prefix: "site a/", ...S3_KEYS };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    this.requests += 1;
    const body = await request.bytes();
    if (this.faults > 0) {
      this.faults -= 1;
      return fault(503, "SlowDown");
    }
    if (this.body !== null) return new Response(this.body);
    if (!isSigned(request, body)) return fault(403, "SignatureDoesNotMatch");
    const url = new URL(request.url);
    const [, bucket, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    if (bucket !== this.bucket) return fault(404, "NoSuchBucket");
    const key = rest.join("/");
    if (key === "" && url.searchParams.get("list-type") === "2") return this.#list(url.searchParams);
    if (request.method === "PUT") {
      this.objects.set(key, body);
      return new Response();
    }
    if (request.method === "DELETE") {
      this.objects.delete(key);
      return new Response(null, { status: 204 });
    }
    const found = this.objects.get(key);
    return found === undefined ? fault(404, "NoSuchKey") : new Response(found.slice());
  }

  #list(query: URLSearchParams): Response {
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(query.get("prefix") ?? "")).sort();
    const from = Number(query.get("continuation-token") ?? 0);
    const page = keys.slice(from, from + this.pageKeys);
    const isTruncated = from + page.length < keys.length;
    const contents = page.map((key) =>
      `<Contents><Key>${encodeURIComponent(key)}</Key><Size>${
        this.objects.get(key)!.length
      }</Size></Contents>`
    );
    return new Response(
      `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>` +
        `<NextContinuationToken>${from + page.length}</NextContinuationToken>${
          contents.join("")
        }</ListBucketResult>`,
    );
  }
}

function fault(status: number, code: string): Response {
  return new Response(`<Error><Code>${code}</Code><Message>no</Message></Error>`, { status });
}

/** Whether a request is signed as the specification of the signature says, from the request alone. */
function isSigned(request: Request, body: Uint8Array): boolean {
  const given =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=(\S+), Signature=(\w+)$/
      .exec(request.headers.get("authorization") ?? "");
  if (given === null) return false;
  const [, keyId, day, region, names, signature] = given as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const bodyHash = createHash("sha256").update(body).digest("hex");
  const date = request.headers.get("x-amz-date") ?? "";
  if (keyId !== S3_KEYS.accessKeyId || region !== REGION || !date.startsWith(day)) return false;
  if (request.headers.get("x-amz-content-sha256") !== bodyHash) return false;
  const signedNames = names.split(";");
  if (!["host", "x-amz-content-sha256", "x-amz-date"].every((name) => signedNames.includes(name))) {
    return false;
  }
  const { host, pathname, searchParams } = new URL(request.url);
  const query = [...searchParams].map((pair) => pair.map(encoded).join("=")).sort().join("&");
  const headers = signedNames.map((name) => `${name}:${name === "host" ? host : request.headers.get(name)}\n`)
    .join("");
  const path = pathname.split("/").map((part) => encoded(decodeURIComponent(part))).join("/");
  const canonical = [request.method, path, query, headers, names, bodyHash].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const hash = createHash("sha256").update(canonical).digest("hex");
  const key = [day, region, "s3", "aws4_request"].reduce<string | Uint8Array>(
    (key, part) => createHmac("sha256", key).update(part).digest(),
    `AWS4${S3_KEYS.secretAccessKey}`,
  );
  const expected = createHmac("sha256", key).update(["AWS4-HMAC-SHA256", date, scope, hash].join("\n"))
    .digest("hex");
  return expected === signature;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
