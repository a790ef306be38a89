/** The exit codes of the command line: one for each kind of failure, so that a script can tell them apart. */

export const EXIT_CODES = {
  ok: { code: 0, meaning: "It worked." },
  failed: { code: 1, meaning: "Something else failed, on this machine as a rule." },
  usage: { code: 2, meaning: "The command line, a setting or the config file is at fault." },
  unreachable: { code: 3, meaning: "The server cannot be reached, or did not answer in time." },
  refused: { code: 4, meaning: "The API key is missing or not accepted (401, 403)." },
  missing: { code: 5, meaning: "What was named does not exist, or is not yours (404)." },
  invalid: {
    code: 6,
    meaning: "The request contradicts the state or breaks a rule (other 4xx, such as 409 and 422).",
  },
  server: { code: 7, meaning: "A fault of the server, or it is too busy now (429, 5xx)." },
  interrupted: { code: 130, meaning: "Ctrl-C, or a signal to end." },
} as const;

export type ExitName = keyof typeof EXIT_CODES;

/** The kind of failure of an HTTP status of 400 or more. */
export function exitOfStatus(status: number): ExitName {
  if (status === 401 || status === 403) return "refused";
  if (status === 404) return "missing";
  if (status === 429 || status >= 500) return "server";
  return "invalid";
}
