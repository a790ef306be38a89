/** The console in a real browser, for tests: signed in, watched for faults, checked for accessibility and for
 * its width, and photographed on request.
 */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import "axe-core";
import { openWatchedPage } from "./browser.ts";
import { KEY_A, PROJECT_ROOT, type TestService } from "./service.ts";

/** Where screenshots are written, to be looked at by a person. */
const SCREENSHOTS = join(PROJECT_ROOT, "test-output", "console");
const WIDE = { width: 1440, height: 900 };
/** Sizes of the windows in which a page is looked at, from a telephone to a wall. */
const WINDOWS = [
  { width: 390, height: 844 },
  { width: 768, height: 1024 },
  { width: 2560, height: 1300 },
  WIDE,
];
/** Which pictures are taken: `some` or `all`, none unless set, as each takes a second of processor time. */
const TAKEN = Deno.env.get("CONSOLE_SCREENSHOTS");
const TAKEN_OF_SOME = [390, 1440];
const WAIT_MS = 20_000;

export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  /** Shows another page of the console: `/runs/run-1?t=2000`. */
  show(place: string): Promise<void>;
  /** Fails on serious findings of axe, in the light and in the dark. */
  checkAccessible(): Promise<void>;
  /**
   * Fails where the page is wider than its window, from 390 to 2560 pixels. With CONSOLE_SCREENSHOTS=some it
   * writes test-output/console/<name>-1440.png and -390.png, with `all` also the other widths and the dark
   * ones.
   */
  photograph(name: string): Promise<void>;
  /**
   * Fails where the page has reported a fault other than these, or has asked another host. One question
   * without a key may be refused, and `refusals` more with a wrong one.
   */
  checkQuiet(expected?: RegExp, options?: { refusals?: number }): void;
}

/** Opens the console of a service at a place and signs in with a key; null for none. */
export async function openConsole(
  test: Pick<TestService, "url">,
  { place = "/", key = KEY_A, args = [] }: { place?: string; key?: string | null; args?: readonly string[] } =
    {},
): Promise<ConsolePage> {
  await using opening = new AsyncDisposableStack();
  const watched = opening.use(await openWatchedPage(`${test.url}/console/#${place}`, args));
  const { page } = watched;
  page.setDefaultTimeout(WAIT_MS);
  await page.setViewportSize(WIDE);
  if (key !== null) await signIn(page, key);
  const owned = opening.move();
  return {
    page,
    show: async (to) => {
      await page.evaluate(
        (hash) => void ((globalThis as unknown as { location: { hash: string } }).location.hash = hash),
        `#${to}`,
      );
    },
    checkAccessible: () => checkAccessible(page),
    photograph: (name) => photograph(page, name),
    checkQuiet: (expected, { refusals = 0 } = {}) => {
      // The first page asks in this way whether a key is needed at all, and whether the one that is entered
      // is taken.
      const isRefusal = (fault: string) => /401 \(Unauthorized\) \S+\/v1\/models$/.test(fault);
      assert.ok(watched.faults.filter(isRefusal).length <= 1 + refusals, watched.faults.join("\n"));
      const faults = watched.faults.filter((fault) => !isRefusal(fault) && !expected?.test(fault));
      assert.deepEqual(faults, []);
      // A blob: address names no host.
      assert.deepEqual([...watched.hosts].filter(Boolean), [new URL(test.url).host]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Enters a key into the form, and waits until the service has taken it. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Open the console" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

const AXE = Deno.readTextFileSync(createRequire(import.meta.url).resolve("axe-core"));

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Runs in the page: all rules, or only those named. */
async function runAxe(rules: readonly string[]): Promise<Finding[]> {
  const only = rules.length > 0 && { runOnly: rules };
  // deno-lint-ignore no-explicit-any -- a global of the page
  return (await (globalThis as any).axe.run({ resultTypes: ["violations"], ...only })).violations;
}

async function checkAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  // Dark or light, only the colours differ.
  for (const [colorScheme, rules] of [["light", []], ["dark", ["color-contrast"]]] as const) {
    await page.emulateMedia({ colorScheme });
    const findings = (await page.evaluate(runAxe, rules)).filter(({ impact }) =>
      impact === "serious" || impact === "critical"
    )
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    assert.deepEqual(findings, [], colorScheme);
  }
  await page.emulateMedia({ colorScheme: null });
}

async function photograph(page: Page, name: string): Promise<void> {
  if (TAKEN) Deno.mkdirSync(SCREENSHOTS, { recursive: true });
  for (const size of WINDOWS) {
    const { width } = size;
    await page.setViewportSize(size);
    const isTaken = TAKEN === "all" || (TAKEN === "some" && TAKEN_OF_SOME.includes(width));
    if (isTaken) await page.waitForTimeout(300); // until what depends on the size is drawn anew
    const overhang = await page.evaluate(async () => {
      // deno-lint-ignore no-explicit-any -- the globals of the page
      const { document, requestAnimationFrame } = globalThis as any;
      for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth - clientWidth;
    });
    assert.ok(overhang <= 0, `${name} is ${overhang} px wider than a window of ${width} px`);
    if (!isTaken) continue;
    await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}.png`) });
    if (TAKEN !== "all") continue;
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-dark.png`) });
    await page.emulateMedia({ colorScheme: null });
  }
}
