/** The configuration of the service as a list that can be filtered: value, default, meaning. Secrets are
 * never shown.
 */

import type { SystemSetting } from "../../../client/mod.ts";
import { setQuery } from "../../shell/place.ts";
import { counted, countText } from "../../text/numbers.ts";

export interface SettingsProps {
  readonly settings: readonly SystemSetting[];
  readonly query: URLSearchParams;
}

export function Settings({ settings, query }: SettingsProps) {
  const text = query.get("setting") ?? "";
  const isSetOnly = query.has("set");
  const wanted = text.trim().toLowerCase();
  const shown = settings.filter((setting) =>
    (!isSetOnly || setting.is_set) &&
    `${setting.name} ${setting.meaning} ${setting.value ?? ""}`.toLowerCase().includes(wanted)
  );
  const set = settings.filter(({ is_set }) => is_set).length;
  // Where several share the service, no value is told, not even of what everybody knows.
  const isHidden = settings.every(({ value }) => value === null);
  return (
    <section class="part" aria-label="Configuration">
      <div class="row">
        <h2>Configuration</h2>
        <span class="dim">{countText(set)} of {counted(settings.length, "setting")} set</span>
      </div>
      <p class="hint">
        Variables of the environment in which the service starts; a change needs a restart. Secrets are never
        shown.
        {isHidden && " Several callers share this service, so no value is told to any of them."}
      </p>
      <div class="row">
        <input
          type="search"
          class="filter"
          aria-label="Filter settings"
          placeholder={`Filter ${settings.length} settings`}
          value={text}
          onInput={(event) => setQuery({ setting: (event.target as HTMLInputElement).value || null })}
        />
        <button
          type="button"
          aria-pressed={isSetOnly}
          onClick={() => setQuery({ set: isSetOnly ? null : "" })}
        >
          Set only
        </button>
      </div>
      {shown.length === 0 && <p class="hint">No setting has this text.</p>}
      <ul class="settings" aria-label="Settings">
        {shown.map((setting) => <Row key={setting.name} of={setting} isHidden={isHidden} />)}
      </ul>
    </section>
  );
}

function Row({ of: setting, isHidden }: { of: SystemSetting; isHidden: boolean }) {
  const { name, meaning, is_set, is_secret, no_effect } = setting;
  return (
    <li class={is_set ? "is-set" : undefined}>
      <code>{name}</code>
      <span class="setting-value">
        {is_set
          ? <strong>{valueText(setting, isHidden)}</strong>
          : <span class="dim">{defaultText(setting)}</span>}
        {is_set && !is_secret && <span class="dim">&#32;instead of {defaultText(setting)}</span>}
      </span>
      <span class="setting-meaning dim">
        {withCode(meaning)}
        {no_effect !== null && <em>&#32;It has no effect: {no_effect}.</em>}
      </span>
    </li>
  );
}

function valueText({ is_secret, value }: SystemSetting, isHidden: boolean): string {
  if (is_secret) return "set, secret";
  return value ?? (isHidden ? "set" : "none");
}

function defaultText({ default: text }: SystemSetting): string {
  return text ?? "none";
}

/** `text` in back quotes as code. */
function withCode(text: string) {
  return text.split("`").map((part, at) => at % 2 === 1 ? <code key={at}>{part}</code> : part);
}
