/** A button that opens a list of actions below it. */

import { useEffect, useRef } from "preact/hooks";

export interface MenuItem {
  readonly text: string;
  readonly run: () => void;
}

export interface MenuProps {
  readonly label: string;
  /** Groups of items under their headings. */
  readonly groups: readonly {
    readonly title: string;
    readonly items: readonly MenuItem[];
  }[];
}

export function Menu({ label, groups }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const closeOutside = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) close(menu.current);
    };
    document.addEventListener("pointerdown", closeOutside);
    return () => document.removeEventListener("pointerdown", closeOutside);
  }, []);
  return (
    <details
      ref={menu}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        close(menu.current);
        menu.current?.querySelector("summary")?.focus();
      }}
    >
      <summary>
        {label} <span aria-hidden="true">▾</span>
      </summary>
      <div class="menu-list">
        {groups.map(({ title, items }) => (
          <section key={title} aria-label={title}>
            <h3>{title}</h3>
            {items.map(({ text, run }) => (
              <button
                key={text}
                type="button"
                class="quiet"
                onClick={() => {
                  close(menu.current);
                  run();
                }}
              >
                {text}
              </button>
            ))}
          </section>
        ))}
      </div>
    </details>
  );
}

function close(menu: HTMLDetailsElement | null): void {
  if (menu) menu.open = false;
}
