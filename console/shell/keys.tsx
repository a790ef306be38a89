/** Keys of the keyboard: each page says what its keys do, and `?` shows all of them. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { MARK_LOOKS } from "../text/event_types.ts";
import { Dialog } from "../ui/dialog.tsx";

export interface KeyAction {
  /**
   * As `KeyboardEvent.key` has it, with `Shift+` before it where that matters: `ArrowLeft`,
   * `Shift+ArrowLeft`, `[`.
   */
  readonly keys: readonly string[];
  /** What it does, for the list of keys: `next mark`. */
  readonly does: string;
  /** Is given which of the keys it was. */
  readonly run: (key: string) => void;
}

interface KeyGroup {
  readonly title: string;
  readonly actions: readonly KeyAction[];
}

const groups = signal<readonly KeyGroup[]>([]);
const isHelpOpen = signal(false);

/** The keys of a page, or of a part of it, while it is shown. */
export function useKeys(title: string, actions: readonly KeyAction[]): void {
  useEffect(() => {
    const group = { title, actions };
    groups.value = [...groups.peek(), group];
    return () => void (groups.value = groups.peek().filter((other) => other !== group));
  }, [title, actions]);
}

/** Listens for the whole page; once. */
export function listenForKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (
      event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented
    ) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) {
      return;
    }
    if (event.key === "?") {
      isHelpOpen.value = true;
      return;
    }
    const name = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
    // The page that came last has its way.
    const action = groups.peek().flatMap(({ actions }) => actions).findLast((
      { keys },
    ) => keys.includes(name));
    if (
      !action || (isControl(event.target) && (name === " " || name === "Enter"))
    ) return;
    event.preventDefault();
    action.run(name);
  });
}

/** The list of all keys, over the page. */
export function KeyHelp() {
  return (
    <Dialog
      title="Keys and marks"
      isOpen={isHelpOpen.value}
      onClose={() => isHelpOpen.value = false}
    >
      {groups.value.map(({ title, actions }) => (
        <section key={title}>
          <h3>{title}</h3>
          <dl class="keys">
            {actions.map(({ keys, does }) => (
              <div key={does}>
                <dt>{keys.map((key) => <kbd key={key}>{shown(key)}</kbd>)}</dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <section>
        <h3>Marks</h3>
        <ul class="legend">
          {Object.values(MARK_LOOKS).map(({ name, shape, colour }) => (
            <li key={name}>
              <span class="mark" style={{ color: colour }} aria-hidden="true">
                {shape}
              </span>{" "}
              {name}
            </li>
          ))}
        </ul>
      </section>
    </Dialog>
  );
}

const SHOWN: Readonly<Record<string, string>> = {
  " ": "space",
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  "Shift+ArrowLeft": "⇧ ←",
  "Shift+ArrowRight": "⇧ →",
  Enter: "↵",
};

function shown(key: string): string {
  return SHOWN[key] ?? key;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches(
        "textarea, select, input:not([type=checkbox], [type=radio])",
      ));
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement &&
    target.matches("button, a, summary, input, video");
}
