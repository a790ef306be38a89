/** Where the server is and who asks: flags, then the environment, then the config file, then the default. */

import { CliError } from "../failure.ts";
import { type ConfigFile, type ConfigKey, configPath, readConfigFile } from "./config_file.ts";
import { readSecret } from "./secret.ts";

export const DEFAULT_URL = "http://127.0.0.1:8080";

/** Which of the four places a value is from. */
export type SettingSource = "flag" | "environment" | "config file" | "default" | "not set";

export interface Settings {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly tenantId: string | undefined;
  readonly sources: Readonly<Record<ConfigKey, SettingSource>>;
  readonly file: ConfigFile;
}

/** The global flags as they were given. */
export interface SettingFlags {
  readonly url?: string;
  readonly apiKey?: string;
  readonly apiKeyFile?: string;
  readonly tenantId?: string;
  readonly config?: string;
}

const VARIABLES: Readonly<Record<ConfigKey, string>> = {
  api_url: "SERVICE_API_URL",
  api_key: "SERVICE_API_KEY",
  tenant_id: "SERVICE_TENANT_ID",
};

/** Throws a usage error that names the setting at fault, never its value where that is secret. */
export function readSettings(flags: SettingFlags): Settings {
  if (flags.apiKey !== undefined && flags.apiKeyFile !== undefined) {
    throw new CliError("usage", "--api-key and --api-key-file cannot be given together");
  }
  const file = readConfigFile(configPath(flags.config));
  const keyFlag = flags.apiKeyFile === undefined ? flags.apiKey : readSecret(flags.apiKeyFile);
  const url = pick("api_url", flags.url, file);
  const apiKey = pick("api_key", keyFlag, file);
  const tenantId = pick("tenant_id", flags.tenantId, file);
  return {
    url: checkedUrl(url.value ?? DEFAULT_URL, url.source),
    apiKey: checkedHeader("API key", apiKey.value),
    tenantId: checkedHeader("tenant id", tenantId.value),
    sources: {
      api_url: url.value === undefined ? "default" : url.source,
      api_key: apiKey.source,
      tenant_id: tenantId.source,
    },
    file,
  };
}

function pick(
  key: ConfigKey,
  flag: string | undefined,
  { values }: ConfigFile,
): { value: string | undefined; source: SettingSource } {
  if (flag !== undefined) return { value: flag, source: "flag" };
  // An empty variable is one that is not set: so a script can take it away for one command.
  const variable = Deno.env.get(VARIABLES[key]);
  if (variable) return { value: variable, source: "environment" };
  if (values[key]) return { value: values[key], source: "config file" };
  return { value: undefined, source: "not set" };
}

/** The address without the slash at its end. */
export function checkedUrl(text: string, source: string): string {
  const fault = (why: string) => new CliError("usage", `the server's URL (${source}) ${why}`);
  if (!URL.canParse(text)) throw fault(`is no URL: ${text}`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw fault("must begin with http:// or https://");
  }
  if (url.username || url.password) throw fault("must have no user name and no password");
  if (url.search || url.hash) throw fault("must have no query and no fragment");
  return text.replace(/\/+$/, "");
}

/** What goes into a header: visible ASCII, and for a tenant blanks inside. */
export function checkedHeader(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
    throw new CliError("usage", `the ${name} must be visible ASCII characters, without a line break`);
  }
  return value;
}
