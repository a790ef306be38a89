/** A table of any length: sorted by a click on a heading, filtered by typing, walked with the arrow keys.
 * Only rows that can be seen are drawn.
 */

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What the column is sorted by; without it, it cannot be. */
  readonly sortBy?: (row: Row) => string | number;
  readonly isNumber?: boolean;
  /** Left out where the page is narrow. */
  readonly isExtra?: boolean;
}

export interface TableProps<Row> {
  /** What the table lists, for screen readers. */
  readonly name: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** The text that the filter looks in; without it there is no filter. */
  readonly textOf?: (row: Row) => string;
  /** Enter, or a click on a row. */
  readonly onOpen?: (row: Row) => void;
  /** Column and direction at first: the rows as they come unless given. */
  readonly sort?: { readonly title: string; readonly isDown: boolean };
}

/** As the style sheet has it. */
const ROW_PX = 34;
/** Rows above and below what can be seen. */
const SPARE_ROWS = 10;

export function Table<Row>(props: TableProps<Row>) {
  const { rows, columns, keyOf, textOf, onOpen } = props;
  const [sort, setSort] = useState(props.sort);
  const [filter, setFilter] = useState("");
  const [active, setActive] = useState(0);
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    const kept = wanted === "" || !textOf
      ? [...rows]
      : rows.filter((row) => textOf(row).toLowerCase().includes(wanted));
    const by = columns.find(({ title }) => title === sort?.title)?.sortBy;
    return by ? kept.sort((one, other) => compared(by(one), by(other)) * (sort!.isDown ? -1 : 1)) : kept;
  }, [rows, filter, sort]);

  const seen = Math.ceil((box.current?.clientHeight ?? 800) / ROW_PX);
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE_ROWS);
  const drawn = shown.slice(first, first + seen + 2 * SPARE_ROWS);
  const move = (to: number) => {
    const index = Math.max(0, Math.min(shown.length - 1, to));
    setActive(index);
    const area = box.current!;
    if (index * ROW_PX < area.scrollTop) area.scrollTop = index * ROW_PX;
    else if ((index + 2) * ROW_PX > area.scrollTop + area.clientHeight) {
      area.scrollTop = (index + 2) * ROW_PX - area.clientHeight;
    }
  };
  const press = (event: KeyboardEvent) => {
    if (event.target !== box.current) return; // the keys of what is inside a row
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: seen, PageUp: -seen }[event.key];
    if (step !== undefined) move(active + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(shown.length - 1);
    else if (event.key === "Enter" && shown[active] !== undefined) {
      onOpen?.(shown[active]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="table">
      {textOf && (
        <input
          type="search"
          class="filter"
          aria-label={`Filter ${props.name}`}
          placeholder={`Filter ${props.name}`}
          value={filter}
          onInput={(event) => setFilter((event.target as HTMLInputElement).value)}
        />
      )}
      <div
        ref={box}
        class="table-box"
        tabIndex={0}
        role="group"
        aria-label={`${props.name}${onOpen ? "; arrow keys choose, Enter opens" : ""}`}
        onKeyDown={press}
        onScroll={(event) => setTop((event.target as HTMLElement).scrollTop)}
      >
        <table aria-rowcount={shown.length + 1}>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading
                  key={column.title}
                  column={column}
                  sort={sort}
                  onSort={setSort}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <Spacer rows={first} columns={columns.length} />}
            {drawn.map((row, at) => (
              <tr
                key={keyOf(row)}
                aria-rowindex={first + at + 2}
                class={`${onOpen ? "opens" : ""}${first + at === active ? " is-active" : ""}`}
                onClick={(event) => opensRow(event) && onOpen?.(row)}
              >
                {columns.map(({ title, cell, isNumber, isExtra }) => (
                  <td key={title} class={classOf(isNumber, isExtra)}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
            <Spacer
              rows={Math.max(0, shown.length - first - drawn.length)}
              columns={columns.length}
            />
          </tbody>
        </table>
        {shown.length === 0 && rows.length > 0 && (
          <p class="hint">
            Nothing in {rows.length} {props.name} has this text.
          </p>
        )}
      </div>
    </div>
  );
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly sort: TableProps<Row>["sort"];
  readonly onSort: (sort: NonNullable<TableProps<Row>["sort"]>) => void;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>) {
  const { title, sortBy, isNumber, isExtra } = column;
  const isSorted = sort?.title === title;
  const direction = isSorted ? (sort.isDown ? "descending" as const : "ascending" as const) : undefined;
  return (
    <th scope="col" class={classOf(isNumber, isExtra)} aria-sort={direction}>
      {sortBy
        ? (
          <button
            type="button"
            class="quiet"
            onClick={() => onSort({ title, isDown: isSorted && !sort.isDown })}
          >
            {title}
            <span aria-hidden="true">
              {isSorted ? (sort.isDown ? " ▾" : " ▴") : ""}
            </span>
          </button>
        )
        : title}
    </th>
  );
}

function Spacer({ rows, columns }: { rows: number; columns: number }) {
  if (rows === 0) return null;
  return (
    <tr class="spacer" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}

function classOf(
  isNumber: boolean | undefined,
  isExtra: boolean | undefined,
): string | undefined {
  return [isNumber && "number", isExtra && "extra"].filter(Boolean).join(" ") ||
    undefined;
}

/** A click on a link or button in the row is meant for that. */
function opensRow(event: Event): boolean {
  return !(event.target as HTMLElement).closest("a, button, input, summary");
}

function compared(one: string | number, other: string | number): number {
  return typeof one === "number" && typeof other === "number"
    ? one - other
    : String(one).localeCompare(String(other));
}
