/** A choice of the named sources that the caller may use; nothing where there are none. */

import { useLoaded } from "../service/loaded.ts";
import { client } from "../service/session.ts";
import { sourceName } from "../text/names.ts";
import { ChoiceField } from "./field.tsx";

export interface SourceFieldProps {
  /** `source:<name>`, or any other address. */
  readonly address: string;
  readonly onChange: (address: string) => void;
  /** Whether it is to be watched live, which a file cannot be. */
  readonly isLive?: boolean;
}

export function SourceField({ address, onChange, isLive = false }: SourceFieldProps) {
  const loaded = useLoaded((signal) => client.value.listSources({ signal }), [client.value]);
  const sources = (loaded.value ?? []).filter(({ kind }) => !isLive || kind !== "file");
  if (sources.length === 0) return null;
  const isNamed = sources.some(({ source_uri }) => source_uri === address);
  return (
    <ChoiceField
      label="Named source"
      value={isNamed ? address : ""}
      onChange={onChange}
      hint="Whoever runs the service has named these, so that nobody else needs their address or password"
      choices={[
        { value: "", text: "None: an address" },
        ...sources.map(({ source_uri, kind, state }) => ({
          value: source_uri,
          text: `${sourceName(source_uri)} (${kind}${state === "disabled" ? "" : `, ${state}`})`,
        })),
      ]}
    />
  );
}
