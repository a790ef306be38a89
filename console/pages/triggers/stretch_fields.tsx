/** The part of a run that is looked at, in seconds of media time; the whole of it unless given. */

import { setQuery } from "../../shell/place.ts";

export function StretchFields({ query }: { query: URLSearchParams }) {
  const isPart = query.has("in") || query.has("out");
  return (
    <div class="stretch-fields">
      <SecondsField label="from second" name="in" query={query} />
      <SecondsField label="to second" name="out" query={query} />
      {isPart && (
        <button
          type="button"
          class="quiet"
          onClick={() => setQuery({ in: null, out: null })}
        >
          Whole run
        </button>
      )}
    </div>
  );
}

/** A bound that would turn the stretch around pushes the other one away. */
function SecondsField(
  { label, name, query }: {
    label: string;
    name: "in" | "out";
    query: URLSearchParams;
  },
) {
  const ms = query.get(name);
  const change = (text: string) => {
    const seconds = Number(text);
    if (text.trim() === "") return setQuery({ [name]: null });
    if (!Number.isFinite(seconds) || seconds < 0) return;
    const changed = Math.round(seconds * 1000);
    const other = name === "in" ? "out" : "in";
    const otherMs = query.get(other);
    const isTurned = otherMs !== null &&
      (name === "in" ? changed > Number(otherMs) : changed < Number(otherMs));
    setQuery({ [name]: String(changed), ...(isTurned && { [other]: null }) });
  };
  return (
    <label>
      {label}
      <input
        type="number"
        min="0"
        step="0.1"
        value={ms === null ? "" : Number(ms) / 1000}
        onChange={({ currentTarget: { value } }) => change(value)}
      />
    </label>
  );
}
