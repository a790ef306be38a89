/** Whether an always-on camera is armed, until when, and a button that changes it. */

import type { NamedSource } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { tell, tellFailure } from "../toast.tsx";

export function ArmedSwitch(
  { source: { name, armed, armed_by, next_change_ms }, onChange }: {
    readonly source: NamedSource;
    readonly onChange: () => void;
  },
) {
  if (armed === null) return null;
  const change = async () => {
    try {
      const asked = client.value;
      const { armed: isArmed } = await (armed ? asked.disarmSource(name) : asked.armSource(name));
      tell(`${name} is ${isArmed ? "armed" : "disarmed"}`);
      onChange();
    } catch (failure) {
      tellFailure(`${name} was not ${armed ? "disarmed" : "armed"}`, failure);
    }
  };
  const until = next_change_ms === null ? "" : ` until ${new Date(next_change_ms).toLocaleString()}`;
  return (
    <p class="row">
      <span>
        {armed ? "Armed" : "Disarmed"}
        {armed_by === "call" ? " by hand" : ""}
        {until}
      </span>
      <button type="button" onClick={change} aria-label={`${armed ? "Disarm" : "Arm"} ${name}`}>
        {armed ? "Disarm" : "Arm"}
      </button>
    </p>
  );
}
