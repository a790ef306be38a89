/** A browser for a test of a web page: what the page loads, what it complains of, and what can be seen on it.
 */

import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM_PATH } from "./needs.ts";

export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /**
   * Errors that the page or the browser has reported, such as something that the policy of the page does not
   * allow; what could not be loaded with its address.
   */
  readonly faults: readonly string[];
  /** The hosts of everything that was asked for. */
  readonly hosts: ReadonlySet<string>;
}

/** Opens `url` in a browser of its own, with further `args` of Chromium. */
export async function openWatchedPage(url: string, args: readonly string[] = []): Promise<WatchedPage> {
  await using opening = new AsyncDisposableStack();
  const browser: Browser = await chromium.launch({
    executablePath: CHROMIUM_PATH!,
    args: [
      ...["--no-sandbox", "--disable-background-networking", ...args],
      ...(args.includes("--enable-quic") ? [] : ["--disable-quic"]),
    ],
  });
  opening.defer(() => browser.close());
  const page = await browser.newPage();
  const faults: string[] = [];
  const hosts = new Set<string>();
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const isOfRequest = message.text().startsWith("Failed to load resource");
    faults.push(isOfRequest ? `${message.text()} ${message.location().url}` : message.text());
  });
  page.on("pageerror", (error) => void faults.push(error.message));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:") hosts.add(host);
  });
  await page.goto(url);
  const owned = opening.move();
  return { page, faults, hosts, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
