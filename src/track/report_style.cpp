#include "src/track/report_parts_internal.h"

namespace muster::track {

std::string_view report_style() {
  return R"css(
:root { --page: #f7f7f5; --card: #fff; --ink: #1e2126; --soft: #5f6670; --line: #e3e3de; --tint: #f1f2ef;
  --accent: #2f5d8c; --bar: #dbe6f1; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15171a; --card: #1c1f23; --ink: #e3e5e8; --soft: #9aa1ab; --line: #2d3137; --tint: #23272c;
    --accent: #8ab6e6; --bar: #2a3f55; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  -webkit-text-size-adjust: 100%; }
header, main { max-width: 1240px; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 2.5rem); }
header { padding-top: 2.2rem; }
main { padding-bottom: 4rem; }
.over { margin: 0; color: var(--soft); font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; }
h1 { margin: .1rem 0 1.1rem; font-size: 1.9rem; line-height: 1.2; font-weight: 650; overflow-wrap: anywhere; }
h2 { margin: 2.8rem 0 1rem; font-size: 1.3rem; font-weight: 650; text-transform: capitalize; }
h3 { margin: 2rem 0 .5rem; font-size: 1rem; font-weight: 600; }
h4 { margin: 0 0 .6rem; font-size: .9rem; font-weight: 550; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .6rem; }
nav a { padding: .45rem .8rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card);
  color: var(--soft); text-decoration: none; font-size: .9rem; }
nav a span { color: var(--accent); font-weight: 600; text-transform: capitalize; margin-right: .35rem; }
nav a:hover { border-color: var(--accent); }
nav b { color: var(--ink); font-weight: 600; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
code { font: .88em ui-monospace, monospace; overflow-wrap: anywhere; }
.note { margin: 0 0 .8rem; color: var(--soft); font-size: .88rem; }
.scroll { width: fit-content; max-width: 100%; overflow: auto; border: 1px solid var(--line);
  border-radius: 10px; background: var(--card); }
.scroll + .scroll, details { margin-top: .8rem; }
.tall { max-height: 34rem; }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .4rem .8rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line);
  max-width: 28rem; overflow: hidden; text-overflow: ellipsis; }
tbody tr:last-child > * { border-bottom: 0; }
th { font-weight: 550; }
thead th { color: var(--soft); font-size: .82rem; }
.num { text-align: right; }
.matrix .first { border-left: 1px solid var(--line); }
.matrix .group { color: var(--ink); text-align: center; border-bottom: 0; padding-bottom: 0; }
.matrix tbody th, .matrix thead td { position: sticky; left: 0; background: var(--card); }
.matrix tbody td { font-size: .98rem; }
.exact { font-size: .84rem; }
.exact th { font-weight: 450; }
summary { cursor: pointer; color: var(--soft); font-size: .88rem; width: fit-content; }
details[open] summary { margin-bottom: .6rem; }
.samples thead th { position: sticky; top: 0; z-index: 1; background: var(--tint); padding: 0; }
.samples th button { all: unset; display: block; box-sizing: border-box; width: 100%; padding: .4rem .8rem;
  cursor: pointer; }
.samples th button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.samples th button:hover { color: var(--accent); }
.samples th[aria-sort] { color: var(--ink); }
.samples th[aria-sort] button::after { content: " ↓"; }
.samples th[aria-sort=ascending] button::after { content: " ↑"; }
.samples tbody tr:hover { background: var(--tint); }
.samples .bar { background: linear-gradient(to left, var(--bar) var(--part, 0%), transparent 0); }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr)); gap: .8rem; }
.curve { margin: 0; padding: .7rem .9rem .5rem; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); min-width: 0; }
.curve figcaption { display: flex; justify-content: space-between; gap: .8rem; font-size: .88rem; }
.curve figcaption span { overflow-wrap: anywhere; }
.curve figcaption b { font-weight: 600; font-variant-numeric: tabular-nums; }
.curve svg { display: block; width: 100%; margin: .4rem 0 .2rem; border-bottom: 1px solid var(--line); }
.curve polyline { fill: none; stroke: var(--accent); stroke-width: 1.6; stroke-linejoin: round; }
.curve circle { fill: var(--accent); }
.axis { display: flex; justify-content: space-between; flex-wrap: wrap; gap: 0 .8rem; margin: 0;
  color: var(--soft); font-size: .76rem; font-variant-numeric: tabular-nums; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(25rem, 100%), 1fr)); gap: .9rem; }
.sample { padding: .8rem .9rem; border: 1px solid var(--line); border-radius: 10px; background: var(--card);
  min-width: 0; }
.sample:target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.index { display: inline-block; min-width: 1.7em; margin-right: .3rem; padding: 0 .4em; border-radius: 5px;
  background: var(--tint); color: var(--soft); text-align: center; font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(10rem, 100%), 1fr)); gap: .8rem; }
.figures figure { margin: 0; min-width: 0; }
.zoom { all: unset; display: flex; justify-content: center; align-items: center; height: 11rem; width: 100%;
  background: var(--tint); border-radius: 6px; overflow: hidden; cursor: zoom-in; }
.zoom:focus-visible { outline: 2px solid var(--accent); }
.zoom img { display: block; max-width: 100%; max-height: 100%; width: auto; height: auto; object-fit: contain; }
.zoom .small { width: 100%; height: 100%; image-rendering: pixelated; }
.absent { display: grid; place-items: center; height: 11rem; border: 1px dashed var(--line); border-radius: 6px;
  color: var(--soft); font-size: .85rem; }
figcaption { margin-top: .35rem; font-size: .84rem; overflow-wrap: anywhere; }
.key, .size { color: var(--soft); font-size: .76rem; font-weight: 400; }
.size { display: block; }
dialog { width: 100vw; height: 100vh; max-width: none; max-height: none; padding: 2rem 1rem 1rem; border: 0;
  background: rgb(12 13 15 / .94); color: #e8e8e8; text-align: center; cursor: zoom-out; }
dialog img { width: 100%; height: calc(100vh - 7rem); object-fit: contain; }
dialog p { margin: .8rem 0 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  th, td, .samples th button { padding: .35rem .5rem; }
  table { font-size: .82rem; }
  td { max-width: 7rem; }
}
@media print { .tall { max-height: none; } .sample, .curve { break-inside: avoid; } }
)css";
}

std::string_view report_script() {
  return R"js(
"use strict";
{
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v;
    return text === undefined ? cell.textContent : Number(text);
  };
  // NaN is the worst number, a cell without one the least.
  const rank = v => typeof v === "number" ? (Number.isNaN(v) ? Infinity : v) : -Infinity;
  const order = (a, b) => typeof a === "string" && typeof b === "string"
    ? a.localeCompare(b, undefined, { numeric: true }) : rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0;
  for (const table of document.querySelectorAll("table.samples")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : head.className === "num" && column > 0;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (down ? -1 : 1) * order(value(a, column), value(b, column)));
      table.tBodies[0].append(...rows);
    }));
  }

  const zooms = [...document.querySelectorAll(".zoom")];
  const viewer = document.createElement("dialog");
  const text = document.createElement("p");
  let at = 0;
  const show = () => {
    const image = document.createElement("img");
    image.src = zooms[at].firstChild.src;
    image.alt = zooms[at].firstChild.alt;
    text.textContent = image.alt;
    viewer.replaceChildren(image, text);
  };
  document.body.append(viewer);
  viewer.addEventListener("click", () => viewer.close());
  viewer.addEventListener("keydown", event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) {
      at = (at + by + zooms.length) % zooms.length;
      show();
    }
  });
  zooms.forEach((zoom, i) => zoom.addEventListener("click", () => {
    at = i;
    show();
    viewer.showModal();
  }));
}
)js";
}

}  // namespace muster::track
