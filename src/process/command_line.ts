/** What the service does instead of starting: it tells what it is and what its configuration would be, or
 * runs a data tool.
 */

import { ConfigFaults, shownSettings } from "../contract/config.ts";
import type { Environment } from "./clean_process.ts";
import { isDataTool, runDataTool } from "./data_tool_process.ts";
import { removeSocketDir } from "./environment.ts";
import { VERSION } from "../http/description/version.ts";
import { readStart } from "./service_process.ts";

const EXIT_FAULTS = 1;
const EXIT_USAGE = 2;

const HELP = `Usage: service [option | command]

Serves video analysis over HTTP until it gets SIGTERM or SIGINT. Its settings are environment variables.

Options:
  --check-config   checks the settings, programs, folders and files as a start does, and tells all faults; makes the folders
  --print-config   prints each setting with its value, its default and where it comes from; secrets are not shown
  --version        prints the version
  --help           prints this text

Commands, on the data directory of SERVICE_DATA_DIR or --data-dir DIR:
  verify           checks every record, every blob and every reference; writes nothing, also while the service runs
  repair           sets damage aside and leaves a sound directory; not while the service runs
  backup TARGET    adds a backup to a folder or s3://BUCKET/PREFIX, also while the service runs; only what is new is copied;
                   --keep N drops all but the newest N, and what only they had
  backups TARGET   lists the whole backups there
  restore SOURCE   puts the newest backup, or --backup ID, into an empty data directory, and compares every hash
  export RUN TARGET  writes an evidence bundle of a run into an empty folder: events, markers, pictures, clips, signed
  public-key       prints the public key with which bundles are verified

Each takes --json. They exit with 0, with 1 where there is damage, with 2 for wrong arguments, with 3 where they cannot do it.
`;

/** Does what the arguments ask. Returns the exit code. */
export async function obey(args: readonly string[], variables: Environment["variables"]): Promise<number> {
  const [option, ...rest] = args;
  if (isDataTool(option)) return await runDataTool(option, rest, variables);
  if (rest.length === 0 && option !== undefined && Object.hasOwn(OPTIONS, option)) {
    return await OPTIONS[option as keyof typeof OPTIONS](variables);
  }
  console.error(`unknown argument '${args.join(" ")}'\n\n${HELP.trimEnd()}`);
  return EXIT_USAGE;
}

const OPTIONS = {
  "--check-config": checkConfig,
  "--print-config": (variables: Environment["variables"]) => {
    for (const { name, value, usual, source } of shownSettings(variables)) {
      console.log(`${name} = ${value}  (${source === "default" ? source : `${source}; default ${usual}`})`);
    }
    return 0;
  },
  "--version": () => {
    console.log(VERSION);
    return 0;
  },
  "--help": () => {
    console.log(HELP.trimEnd());
    return 0;
  },
};

async function checkConfig(variables: Environment["variables"]): Promise<number> {
  try {
    const { config, places } = await readStart(variables);
    removeSocketDir(places);
    for (const warning of config.warnings) console.error(`warning: ${warning}`);
    console.log("the configuration has no faults");
    return 0;
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    console.error(error.message);
    return EXIT_FAULTS;
  }
}
