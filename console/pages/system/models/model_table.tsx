/** All models of the catalog, and which of them can be asked now. */

import type { Model } from "../../../../client/mod.ts";
import { type Column, Table } from "../../../ui/table.tsx";

const LOOKS: Readonly<Record<string, { readonly mark: string; readonly tone: string }>> = {
  ready: { mark: "●", tone: "good" },
  saturated: { mark: "◐", tone: "busy" },
  unavailable: { mark: "○", tone: "calm" },
};

const COLUMNS: readonly Column<Model>[] = [
  { title: "Model", cell: ({ id }) => <code>{id}</code>, sortBy: ({ id }) => id },
  {
    title: "State",
    cell: ({ availability }) => {
      const { mark, tone } = LOOKS[availability] ?? LOOKS.unavailable!;
      return (
        <span class={`status is-${tone}`}>
          <span aria-hidden="true">{mark}</span> {availability === "saturated" ? "slow" : availability}
        </span>
      );
    },
    sortBy: ({ availability }) => availability,
  },
  { title: "Tier", cell: ({ tier }) => tier, sortBy: ({ tier }) => tier, isExtra: true },
  {
    title: "Served by",
    cell: ({ providers_available }) => providers_available.join(", "),
    sortBy: ({ providers_available }) => providers_available.join(","),
    isExtra: true,
  },
];

export function ModelTable({ models }: { models: readonly Model[] }) {
  return (
    <Table
      name="models"
      rows={models}
      columns={COLUMNS}
      keyOf={({ id }) => id}
      textOf={({ id, tier, availability }) => `${id} ${tier} ${availability}`}
    />
  );
}
