/** `config show`, `config set` and `config unset`. */

import { CliError } from "../failure.ts";
import type { Handler } from "../session.ts";
import { changeConfigFile, type ConfigKey, configPath } from "../settings/config_file.ts";
import { masked, readSecret } from "../settings/secret.ts";
import { checkedHeader, checkedUrl } from "../settings/settings.ts";

export const showConfig: Handler = async ({ out, settings }) => {
  const { url, apiKey, tenantId, sources, file } = settings;
  const values: Readonly<Record<ConfigKey, string | null>> = {
    api_url: url,
    api_key: apiKey === undefined ? null : masked(apiKey),
    tenant_id: tenantId ?? null,
  };
  const rows = (Object.keys(values) as ConfigKey[]).map((key) => ({
    key,
    value: values[key],
    source: sources[key],
  }));
  if (out.isJson) return out.json({ file: file.path, file_exists: file.exists, settings: rows });
  await out.list(
    rows,
    [{ title: "SETTING" }, { title: "VALUE" }, { title: "FROM" }],
    rows.map(({ key, value, source }) => [key, value, source]),
    "",
  );
  out.note(`config file: ${file.path}${file.exists ? "" : " (not there)"}`);
};

export const setConfig: Handler = ({ out, settingFlags }, [key, given]) => {
  const path = configPath(settingFlags.config);
  const value = checked(key as ConfigKey, given === "-" ? readSecret("-") : given!);
  changeConfigFile(path, key as ConfigKey, value);
  told(out, { key, file: path, action: "set" });
};

export const unsetConfig: Handler = ({ out, settingFlags }, [key]) => {
  const path = configPath(settingFlags.config);
  changeConfigFile(path, key as ConfigKey, undefined);
  told(out, { key, file: path, action: "removed" });
};

function told(
  out: Parameters<Handler>[0]["out"],
  done: { key: string | undefined; file: string; action: string },
): void {
  if (out.isJson) out.json(done);
  else out.note(`${done.key} is ${done.action} in ${done.file}`);
}

function checked(key: ConfigKey, value: string): string {
  if (value === "") {
    throw new CliError("usage", `${key} must not be empty; \`config unset ${key}\` removes it`);
  }
  if (key === "api_url") return checkedUrl(value, "api_url");
  return checkedHeader(key === "api_key" ? "API key" : "tenant id", value)!;
}
