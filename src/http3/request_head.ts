/** What the fields of a request say: method, URL and headers, checked as RFC 9114 4.2 and 4.3 ask. */

import { RequestFault } from "./wire/faults.ts";
import type { Field } from "./qpack/field_decoder.ts";

export interface RequestHead {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  /** The declared length of the body; null where none is. */
  readonly contentLength: number | null;
}

const PSEUDO_FIELDS: readonly string[] = [":method", ":scheme", ":authority", ":path"];
/** Fields of a connection of HTTP/1.1 (RFC 9114 4.2). */
const CONNECTION_FIELDS: readonly string[] = [
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"],
];
const METHODS_OF_ANY_CASE: readonly string[] = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** What no value may have (RFC 9114 10.3). */
const FORBIDDEN_IN_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;

/** `URL` would drop a tab, and read what stands behind a `#` as no part of the path (RFC 9114 4.3.1). */
const FORBIDDEN_IN_PATH = /[\0-\x20\x7f#]/;
const FORBIDDEN_IN_AUTHORITY = /[\0-\x20\x7f/?#@\\]/;

/** Throws a {@link RequestFault} for a malformed request, and for a method that a server without tunnels does not have. */
export function requestHead(fields: readonly Field[]): RequestHead {
  const pseudo = new Map<string, string>();
  const headers: [string, string][] = [];
  const cookies: string[] = [];
  for (const [name, value] of fields) {
    if (FORBIDDEN_IN_VALUE.test(value)) {
      throw malformed("a header field has a character that it may not have");
    }
    if (name.startsWith(":")) {
      if (headers.length > 0 || cookies.length > 0) {
        throw malformed("a pseudo-header field stands behind others");
      }
      if (!PSEUDO_FIELDS.includes(name) || pseudo.has(name)) {
        throw malformed("a pseudo-header field is wrong");
      }
      pseudo.set(name, value);
      continue;
    }
    checkField(name, value);
    if (name === "cookie") cookies.push(value); // a client may send it in pieces (RFC 9114 4.2.1)
    else headers.push([name, value]);
  }
  if (cookies.length > 0) headers.push(["cookie", cookies.join("; ")]);
  const method = methodOf(pseudo.get(":method"));
  return { method, url: urlOf(method, pseudo, headers), headers, contentLength: contentLengthOf(headers) };
}

/** The fields behind a body: they are checked, and nothing reads them. */
export function checkTrailers(fields: readonly Field[]): void {
  for (const [name, value] of fields) {
    if (name.startsWith(":")) throw malformed("a pseudo-header field stands behind the body");
    if (FORBIDDEN_IN_VALUE.test(value)) {
      throw malformed("a header field has a character that it may not have");
    }
    checkField(name, value);
  }
}

function checkField(name: string, value: string): void {
  if (!FIELD_NAME.test(name)) throw malformed("the name of a header field is wrong");
  if (CONNECTION_FIELDS.includes(name) || (name === "te" && value !== "trailers")) {
    throw malformed("a header field belongs to HTTP/1.1");
  }
}

function methodOf(method: string | undefined): string {
  if (method === undefined || !TOKEN.test(method)) throw malformed("the method is missing or wrong");
  // A `Request` would make these of them, and a method is not the same in other letters (RFC 9110 9.1).
  const upper = method.toUpperCase();
  if (method !== upper && METHODS_OF_ANY_CASE.includes(upper)) {
    throw new RequestFault(405, "Method not allowed");
  }
  if (["CONNECT", "TRACE", "TRACK"].includes(upper)) throw new RequestFault(501, "There is no such method");
  return method;
}

function urlOf(method: string, pseudo: ReadonlyMap<string, string>, headers: [string, string][]): string {
  const path = pseudo.get(":path") ?? "";
  if (pseudo.get(":scheme") !== "https") throw malformed("the scheme is not https");
  if ((!path.startsWith("/") && !(path === "*" && method === "OPTIONS")) || FORBIDDEN_IN_PATH.test(path)) {
    throw malformed("the path is missing or wrong");
  }
  const authority = pseudo.get(":authority");
  const [host, ...others] = valuesOf("host", headers);
  if (others.length > 0) throw malformed("there are several hosts");
  if (authority !== undefined && host !== undefined && authority !== host) {
    throw malformed("the host and the authority differ");
  }
  const named = authority ?? host ?? "";
  if (named === "" || FORBIDDEN_IN_AUTHORITY.test(named)) {
    throw malformed("the authority is missing or wrong");
  }
  if (host === undefined) headers.push(["host", named]);
  return `https://${named}${path === "*" ? "/" : path}`;
}

function contentLengthOf(headers: readonly [string, string][]): number | null {
  const [length, ...others] = valuesOf("content-length", headers);
  if (length === undefined) return null;
  if (others.some((other) => other !== length) || !/^\d{1,15}$/.test(length)) {
    throw malformed("the content length is wrong");
  }
  return Number(length);
}

function valuesOf(name: string, headers: readonly [string, string][]): string[] {
  return headers.filter((header) => header[0] === name).map((header) => header[1]);
}

function malformed(what: string): RequestFault {
  return new RequestFault(400, `The request is malformed: ${what}`);
}
