// SPDX-License-Identifier: Apache-2.0
// Style and script of the pages. Colours are those of the charts (analysis/svg.cpp).
#pragma once

namespace zsq::pipeline {

inline constexpr const char* kPageStyle = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0;
  --panel: #f6f8fa; --accent: #0969da; --good: #1a7f37; --fair: #bf8700; --bad: #cf222e }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #f0f6fc; --faint: #9198a1;
  --line: #3d444d; --panel: #151b23; --accent: #58a6ff; --good: #3fb950; --fair: #d29922; --bad: #ff7b72 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1060px; margin: 0 auto; padding: 24px 16px 48px }
h1 { margin: 0 0 12px; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere }
h2 { margin: 40px 0 12px; padding-bottom: 4px; border-bottom: 1px solid var(--line); font-size: 1.15rem }
p { max-width: 46rem; margin: 8px 0; overflow-wrap: anywhere }
code { font: .92em ui-monospace, monospace }
.verdict { padding: 12px 16px; border-left: 6px solid var(--fair); border-radius: 0 8px 8px 0; background: var(--panel) }
.verdict strong { font-size: 1.3rem; line-height: 1.3 }
.verdict p { margin: 4px 0 0 }
.good { border-color: var(--good) }
.bad { border-color: var(--bad) }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(145px, 1fr)); gap: 10px; margin: 14px 0 0 }
.cards div { padding: 10px 14px; border: 1px solid var(--line); border-radius: 8px }
.cards dt { color: var(--faint); font-size: .85rem }
.cards dd { margin: 0; font-size: 1.4rem; line-height: 1.4 }
.cards small { display: block; color: var(--faint); font-size: .8rem }
.charts, .samples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); gap: 16px 24px; align-items: start }
.samples { grid-template-columns: repeat(auto-fill, minmax(min(100%, 290px), 1fr)) }
.charts svg { width: 100%; max-width: 470px; height: auto }
figure { margin: 0 }
figure img { display: block; width: 100%; max-width: 490px; border-radius: 4px; image-rendering: pixelated }
figcaption, caption { color: var(--faint); font-size: .87rem; text-align: left }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(46rem, 100vw - 32px); padding-bottom: 6px }
.scroll { max-width: 100%; margin: 20px 0; overflow-x: auto }
.scroll:focus-visible, button:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums }
th, td { padding: 4px 16px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; white-space: nowrap }
td:last-child { padding-right: 0 }
td:last-child:not(.number) { min-width: 13rem; white-space: normal }
thead th { color: var(--faint); font-weight: 600; vertical-align: bottom; white-space: normal }
tbody th { font-weight: 500 }
.number { text-align: right }
.facts th { color: var(--faint) }
.facts td, .facts th { white-space: normal }
.facts td { overflow-wrap: anywhere }
th button { padding: 0; border: 0; background: none; color: inherit; font: inherit; text-align: inherit; cursor: pointer }
th button::after { content: "\2195"; margin-left: 3px; opacity: .35 }
[aria-sort=ascending] button::after { content: "\2191"; opacity: 1 }
[aria-sort=descending] button::after { content: "\2193"; opacity: 1 }
summary { cursor: pointer; color: var(--accent) }
@page { margin: 14mm }
@media print {
  body { font-size: 10pt }
  main { max-width: none; padding: 0 1px }
  .cards { grid-template-columns: repeat(5, 1fr) }
  .cards dd { font-size: 13pt }
  .charts { grid-template-columns: 1fr 1fr }
  .samples { grid-template-columns: 1fr 1fr 1fr }
  h2 { margin-top: 20pt; break-after: avoid }
  svg, figure, tr, .verdict, .cards { break-inside: avoid }
  .scroll { overflow: visible }
  caption, figcaption { font-size: 8pt }
  caption span { position: static; max-width: none }
  td:last-child:not(.number) { min-width: 0 }
  table { font-size: 7.5pt }
  th, td { padding-right: 6pt; white-space: normal; overflow-wrap: break-word }
  section > p { break-after: avoid }
  tbody .number { white-space: nowrap }
  th button::after { content: "" }
}
)css";

// A click on a heading sorts by its column, a second one the other way round. A cell's number is
// the largest that it holds (of "-0.4 to 0.7": 0.7); empty cells come last.
inline constexpr const char* kPageScript = R"js(
for (const table of document.querySelectorAll('.scroll > table')) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const numeric = head.classList.contains('number');
    const text = row => row.cells[column].textContent.trim();
    const number = row => Math.max(...(text(row).match(/-?[\d.]+(e-?\d+)?/g) ?? []).map(Number));
    const compare = (a, b) => numeric ? number(a) - number(b)
                                      : text(a).localeCompare(text(b), 'en', {numeric: true});
    button.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const rows = [...table.tBodies[0].rows];
      const empty = row => (numeric ? number(row) === -Infinity : text(row) === '') ? 1 : 0;
      rows.sort((a, b) => empty(a) - empty(b) || (up ? compare(a, b) : compare(b, a)) || 0);
      table.tBodies[0].append(...rows);
    });
  });
}
)js";

}  // namespace zsq::pipeline
