#include "html_style.h"

namespace muster::app {

std::string_view html_style() {
  return R"css(
:root { --page: #f7f7f5; --card: #fff; --ink: #1e2126; --soft: #5f6670; --line: #e3e3de; --tint: #f1f2ef;
  --accent: #2f5d8c; --bad: #a3261f; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15171a; --card: #1c1f23; --ink: #e3e5e8; --soft: #9aa1ab; --line: #2d3137; --tint: #23272c;
    --accent: #8ab6e6; --bad: #f08a80; --warn: #e0b050; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  -webkit-text-size-adjust: 100%; }
header, main { max-width: 1240px; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 2.5rem); }
header { padding-top: 2.2rem; }
main { padding-bottom: 4rem; }
.over { margin: 0; color: var(--soft); font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; }
h1 { margin: .1rem 0 .6rem; font-size: 1.9rem; line-height: 1.2; font-weight: 650; overflow-wrap: anywhere; }
h2 { margin: 2.4rem 0 .8rem; font-size: 1.3rem; font-weight: 650; }
h3 { margin: 0 0 .3rem; font-size: .95rem; font-weight: 600; overflow-wrap: anywhere; }
.note { margin: 0 0 .6rem; color: var(--soft); font-size: .88rem; max-width: 60rem; overflow-wrap: anywhere; }
.note b { color: var(--ink); font-weight: 600; }
.note .error, .error b { color: var(--bad); }
.warning b { color: var(--warn); }
.scroll { width: fit-content; max-width: 100%; overflow: auto; border: 1px solid var(--line);
  border-radius: 10px; background: var(--card); }
.tall { max-height: 40rem; }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .7rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
tbody tr:hover > * { background: var(--tint); }
th { font-weight: 550; }
thead th, thead td { color: var(--soft); font-size: .82rem; background: var(--card); }
.tall thead { position: sticky; top: 0; z-index: 1; }
.num { text-align: right; }
.none { color: var(--soft); }
.first { border-left: 1px solid var(--line); }
.first.num { color: var(--soft); }
thead .group { color: var(--ink); text-align: center; border-bottom: 0; padding-bottom: 0; }
tbody th, thead tr > :first-child { position: sticky; left: 0; background: var(--card); }
tbody th { max-width: 17rem; overflow: hidden; text-overflow: ellipsis; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(34rem, 100%), 1fr)); gap: .9rem; }
.sample { padding: .8rem .9rem; border: 1px solid var(--line); border-radius: 10px; background: var(--card);
  min-width: 0; }
.index { display: inline-block; min-width: 1.7em; margin-right: .4rem; padding: 0 .4em; border-radius: 5px;
  background: var(--tint); color: var(--soft); text-align: center; font-variant-numeric: tabular-nums; }
.size { color: var(--soft); font-size: .8rem; font-weight: 400; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 .7rem; margin: 0 0 .6rem; font-size: .84rem;
  color: var(--soft); font-variant-numeric: tabular-nums; }
dd { margin: 0; }
dd span { white-space: nowrap; }
dd b { color: var(--ink); font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(3, 1fr); gap: .5rem; }
figure { margin: 0; min-width: 0; }
figure img { display: block; width: 100%; height: auto; max-height: 15rem; object-fit: contain;
  background: var(--tint); border-radius: 6px; }
figcaption { margin-top: .2rem; color: var(--soft); font-size: .78rem; }
.heat { display: inline-block; width: 5rem; height: .7em; border-radius: 3px; background:
  linear-gradient(to right, #000, #2d083c 2%, #961450 12%, #f04628 35%, #ffbe32 70%, #ffffe6); }
.problems { margin: 0; padding: 0; list-style: none; font-size: .88rem; }
.problems li { padding: .3rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  th, td { padding: .3rem .45rem; }
  table { font-size: .82rem; }
  tbody th { max-width: 8rem; }
}
@media print { .tall { max-height: none; } .sample { break-inside: avoid; } }
)css";
}

}  // namespace muster::app
