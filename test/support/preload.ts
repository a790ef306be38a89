/** Loaded before every test file: gives each test a deadline, so that a test that hangs fails with its name.
 */

import { runInThisContext } from "node:vm";

/**
 * Deadline of a test that names none, 18 times what such a test takes at most on two quiet processors. A test
 * that needs longer says so with the option `timeout`, in milliseconds.
 */
export const TEST_DEADLINE_MS = 180_000;

type Arguments = unknown[];

/**
 * The forms of `Deno.test`: options alone, options with a function, a name with or without options, a named
 * function.
 */
function withDeadline(args: Arguments): Arguments {
  const index = args.findIndex((argument) => typeof argument === "object" && argument !== null);
  if (index >= 0) return args.with(index, { timeout: TEST_DEADLINE_MS, ...args[index] as object });
  const at = typeof args[0] === "string" ? 1 : 0;
  return args.toSpliced(at, 0, { timeout: TEST_DEADLINE_MS });
}

/**
 * Deno takes the place of a test from the first frame of the stack that is not its own, and its own are those
 * of scripts called "ext:…". Under such a name this wrapper is passed over, and reports go on to name the
 * test's file and line.
 */
const wrapped = runInThisContext(
  "(function (register, change) { return function test(...args) { return register(...change(args)); }; })",
  { filename: "ext:test_deadline" },
) as (register: (...args: Arguments) => void, change: (args: Arguments) => Arguments) => typeof Deno.test;

const original = Deno.test;
(Deno as { test: typeof Deno.test }).test = Object.assign(
  wrapped(original as (...args: Arguments) => void, withDeadline),
  original,
);
