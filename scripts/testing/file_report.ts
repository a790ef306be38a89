/** What one run of `deno test` over one file says, read from its output and from its JUnit report. */

export interface TestTime {
  readonly name: string;
  readonly seconds: number;
}

export interface FileReport {
  readonly passed: number;
  readonly failed: number;
  /** Names of the tests that were skipped; a name holds the reason. */
  readonly skipped: readonly string[];
  readonly failures: readonly string[];
  readonly times: readonly TestTime[];
}

/**
 * The report of a file. `junit` is empty where the process ended before it wrote its report; then the tests'
 * own lines count.
 */
export function readReport(output: string, junit: string): FileReport {
  const summary = /^(?:ok|FAILED) \| (\d+) passed.*? \| (\d+) failed/m.exec(output);
  const cases = casesOf(junit);
  const lines = testLines(output);
  const names = (state: string) => lines.filter((line) => line.state === state).map(({ name }) => name);
  return {
    passed: summary ? Number(summary[1]) : names("ok").length,
    failed: summary ? Number(summary[2]) : names("FAILED").length + names("cancelled").length,
    skipped: names("ignored"),
    failures: [...names("FAILED"), ...names("under way"), ...names("cancelled")],
    times: cases,
  };
}

/** The test that had begun and not ended when the output stopped; null where there was none. */
export function testUnderWay(output: string): string | null {
  return testLines(output).findLast(({ state }) => state === "under way")?.name ?? null;
}

interface TestLine {
  readonly name: string;
  readonly state: "ok" | "FAILED" | "ignored" | "cancelled" | "under way";
}

/**
 * Deno writes "name ..." when a test begins and " ok (2ms)" after it when it ends. Where the test prints, has
 * steps or writes through another process, its end comes on a later line, which repeats the name. Steps are
 * indented.
 */
function testLines(output: string): TestLine[] {
  const states = new Map<string, TestLine["state"]>();
  for (const line of output.split("\n")) {
    const match = /^(\S.*) \.\.\.(?: (ok|FAILED|ignored|cancelled)(?: \(.*\))?)?$/.exec(line);
    if (match) states.set(match[1]!, (match[2] as TestLine["state"] | undefined) ?? "under way");
    if (/^ (ERRORS|FAILURES) $/.test(line)) break; // what follows repeats names, and shows texts of any form
  }
  return [...states].map(([name, state]) => ({ name, state }));
}

function casesOf(junit: string): TestTime[] {
  return [...junit.matchAll(/<testcase name="([^"]*)"[^>]*? time="([\d.]+)"/g)].map(([, name, time]) => ({
    name: unescaped(name!),
    seconds: Number(time),
  })).filter(({ name }) => !name.includes(" > "));
}

function unescaped(text: string): string {
  return text.replace(
    /&(lt|gt|quot|apos|amp|#(\d+)|#x([\da-f]+));/gi,
    (whole, name, decimal, hex) => {
      if (decimal) return String.fromCodePoint(Number(decimal));
      if (hex) return String.fromCodePoint(parseInt(hex, 16));
      return { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" }[name as string] ?? whole;
    },
  );
}
