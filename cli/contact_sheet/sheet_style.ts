/** The style of the contact sheet, for light and dark screens. */

export const SHEET_STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#fbfbfa, #161618);
  --text: light-dark(#1d1d1f, #e6e6e8);
  --soft: light-dark(#6e6e73, #98989f);
  --line: light-dark(#e3e3e1, #2c2c30);
  --scene_cut: light-dark(#1d1d1f, #f2f2f3);
  --gradual_transition: light-dark(#0b8a7a, #3fc7b4);
  --flash: light-dark(#c98a00, #f2bd3f);
  --freeze: light-dark(#2f6fd6, #6ea8ff);
  --black: light-dark(#77777d, #8d8d95);
  --repeat: light-dark(#8250c4, #b993f0);
  --artifact_suspected: light-dark(#cc3b3b, #ff7b72);
}
* { box-sizing: border-box; margin: 0; }
body {
  max-width: 1280px; margin: 0 auto; padding: 40px 32px 64px;
  background: var(--page); color: var(--text);
  font: 13px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
header { margin-bottom: 40px; }
h1 { font-size: 22px; font-weight: 600; letter-spacing: -0.01em; }
h2 { font-size: 16px; font-weight: 600; }
header p, .about { color: var(--soft); }
section { margin-bottom: 56px; }
.about { margin-bottom: 20px; }

.row { margin-bottom: 18px; }
.lanes { position: relative; margin-bottom: 3px; }
.lanes u { position: absolute; height: 4px; margin-top: 16px; min-width: 2px; border-radius: 1px; background: var(--colour); }
.lanes span { position: absolute; padding-left: 1px; white-space: nowrap; font-size: 11px; line-height: 15px; color: var(--colour); }
.lanes u.scene_cut { height: 20px; margin-top: 0; width: 2px !important; }
.lanes span.scene_cut { padding-left: 6px; }
.film { position: relative; height: 68px; overflow: hidden; }
.film b { position: absolute; top: 0; height: 68px; overflow: hidden; background: #000; border-right: 1px solid var(--page); }
.film img { width: 100%; height: 100%; object-fit: cover; display: block; }
.ticks { position: relative; height: 16px; border-top: 1px solid var(--line); }
.ticks i { position: absolute; padding-left: 4px; border-left: 1px solid var(--line); font: inherit; font-size: 10px; line-height: 16px; color: var(--soft); }
.done { opacity: 0.7; }
.done u { height: 3px; margin-top: 1px; }
.done span { margin-top: 4px; }
.done u.scene_cut { height: 18px; }

.scene_cut { --colour: var(--scene_cut); }
.gradual_transition { --colour: var(--gradual_transition); }
.flash { --colour: var(--flash); }
.freeze { --colour: var(--freeze); }
.black { --colour: var(--black); }
.repeat { --colour: var(--repeat); }
.artifact_suspected { --colour: var(--artifact_suspected); }

.marks { list-style: none; padding: 0; margin-top: 28px; display: grid; grid-template-columns: repeat(auto-fill, minmax(376px, 1fr)); gap: 22px 24px; }
.marks h3 { font-size: 13px; font-weight: 600; }
.marks h3 u { display: inline-block; width: 9px; height: 9px; margin-right: 7px; border-radius: 2px; background: var(--colour); }
.marks h3 span { font-weight: 400; color: var(--soft); margin-left: 6px; }
.marks p { color: var(--soft); font-size: 12px; }
.frames { display: grid; grid-template-columns: repeat(4, 1fr); gap: 4px; margin: 5px 0 3px; }
figure { min-width: 0; }
figure img { width: 100%; display: block; border-bottom: 3px solid transparent; }
figure.inside img { border-bottom-color: var(--colour); }
figcaption { font-size: 10px; line-height: 14px; color: var(--soft); }
`;
