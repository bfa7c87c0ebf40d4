"use strict";
// Draws a captured plan: map of offset × step, occupancy, lanes, tables. No library.
const capture = JSON.parse(document.getElementById("capture").textContent);
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const steps = capture.steps;
const stepCount = Math.max(1, steps.names.length);
const buffers = capture.buffers;
const copies = capture.copies;
const byStart = buffers.map((_, i) => i).sort((a, b) => buffers[a].start - buffers[b].start);
const longest = buffers.reduce((m, b) => Math.max(m, b.end - b.start), 1);
const times = new Float64Array(stepCount + 1);
for (let i = 0; i < steps.names.length; i++) {
  times[i + 1] = times[i] + Math.max(steps.compute[i], steps.memory[i]) * steps.trip[i] + steps.stall[i] * steps.trip[i];
}
const view = { from: 0, to: stepCount, byTime: false };
let selected = -1;
let cursor = 0;
let matches = null;

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (Math.abs(n) >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return `${+n.toFixed(1)} ${units[u]}`;
}
function seconds(s) {
  const table = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  if (!s) return "0";
  for (const [scale, unit] of table) if (Math.abs(s) >= scale) return `${(s / scale).toPrecision(3)} ${unit}`;
  return `${(s / 1e-9).toPrecision(2)} ns`;
}
const kindText = (kind) => kind.replace("_", "-");
function escapeText(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}

// ---- axes: x is a step, or modelled time; the view is a range of steps -------------
function place(step) {
  if (!view.byTime) return step;
  const low = Math.min(stepCount, Math.max(0, Math.floor(step)));
  const next = Math.min(stepCount, low + 1);
  const whole = times[low] + (times[next] - times[low]) * (step - low);
  return times[stepCount] ? (whole / times[stepCount]) * stepCount : step;
}
function x(step, width) {
  const a = place(view.from), b = place(view.to);
  return ((place(step) - a) / Math.max(1e-9, b - a)) * width;
}
function stepAt(pixel, width) {
  const a = place(view.from), b = place(view.to);
  const goal = a + (pixel / width) * (b - a);
  if (!view.byTime) return goal;
  let low = 0, high = stepCount;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (place(mid) <= goal) low = mid; else high = mid - 1;
  }
  return low;
}
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const width = Math.max(50, box.width), height = box.height;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return { pen, width, height };
}
function visible() {
  // Buffers sorted by start: those that may reach into the view.
  let low = 0, high = byStart.length;
  const first = view.from - longest;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (buffers[byStart[mid]].start < first) low = mid + 1; else high = mid;
  }
  const out = [];
  for (let k = low; k < byStart.length && buffers[byStart[k]].start < view.to; k++) {
    if (buffers[byStart[k]].end > view.from) out.push(byStart[k]);
  }
  return out;
}

const hue = (name) => {
  let h = 0;
  for (let i = 0; i < name.length; i++) h = (h * 31 + name.charCodeAt(i)) >>> 0;
  return h % 360;
};
const capacity = Math.max(1, capture.alternate_memory_bytes);

function drawMap() {
  const { pen, width, height } = prepare($("map-canvas"));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const top = Math.max(1, Math.min(capacity, capture.alternate_peak_bytes * 1.04 || capacity));
  const y = (offset) => height - (offset / top) * height;
  for (const i of visible()) {
    const b = buffers[i];
    if (b.offset < 0) continue;
    const left = x(b.start, width), right = Math.max(left + 1, x(b.end, width));
    const up = y(b.offset + b.size), down = Math.max(up + 1, y(b.offset));
    const faded = matches && !matches.has(i);
    pen.fillStyle = `hsla(${hue(b.value)}, ${faded ? 8 : 48}%, ${dark ? 46 : 66}%, ${faded ? 0.35 : 1})`;
    pen.fillRect(left, up, right - left, down - up);
    if (i === selected) {
      pen.strokeStyle = css("--select"); pen.lineWidth = 2;
      pen.strokeRect(left, up, right - left, down - up);
    }
    if (right - left > 60 && down - up > 14 && !faded) {
      pen.save();
      pen.beginPath(); pen.rect(left, up, right - left - 3, down - up); pen.clip();
      pen.fillStyle = dark ? "#f3f6fa" : "#17202e";
      pen.fillText(b.value, left + 4, Math.min(down - 4, up + 13));
      pen.restore();
    }
  }
  pen.fillStyle = css("--soft");
  pen.fillText(`${bytes(top)}`, 6, 13);
  pen.fillText("0", 6, height - 5);
  if (!buffers.length) pen.fillText("Nothing is placed in fast memory.", 60, height / 2);
}
function drawOccupancy() {
  const { pen, width, height } = prepare($("occupancy-canvas"));
  const top = Math.max(1, capture.alternate_peak_bytes);
  pen.fillStyle = css("--accent");
  const data = capture.occupancy;
  const columns = Math.floor(width);
  for (let c = 0; c < columns; c++) {
    const a = Math.floor(stepAt(c, width)), b = Math.max(a + 1, Math.ceil(stepAt(c + 1, width)));
    let most = 0;
    for (let s = Math.max(0, a); s < Math.min(b, data.length); s++) if (data[s] > most) most = data[s];
    const h = (most / top) * (height - 16);
    pen.fillRect(c, height - h, 1, h);
  }
  pen.fillStyle = css("--soft");
  pen.fillText(`in use, up to ${bytes(top)} of ${bytes(capacity)}`, 6, 12);
}
function drawLanes() {
  const { pen, width, height } = prepare($("lanes-canvas"));
  const rows = [["compute", 12], ["copies in", 50], ["copies out", 88]];
  pen.fillStyle = css("--compute");
  const a = Math.max(0, Math.floor(view.from)), b = Math.min(steps.names.length, Math.ceil(view.to));
  const stride = Math.max(1, Math.floor((b - a) / (width * 2)));
  const waiting = css("--stall"), working = css("--compute");
  for (let s = a; s < b; s += stride) {
    const left = x(s, width), right = x(s + stride, width);
    let stalled = false;
    for (let t = s; t < Math.min(b, s + stride); t++) stalled ||= steps.stall[t] > 0;
    pen.fillStyle = stalled ? waiting : working;
    pen.fillRect(left, 16, Math.max(0.6, right - left - (right - left > 3 ? 1 : 0)), 18);
  }
  const inward = css("--prefetch"), outward = css("--evict");
  for (const c of copies) {
    if (c.done_step < view.from || c.start_step > view.to) continue;
    const evict = c.kind === "eviction";
    pen.fillStyle = evict ? outward : inward;
    const left = x(c.start_step, width), right = x(c.done_step, width);
    pen.fillRect(left, evict ? 92 : 54, Math.max(1.5, right - left), 18);
  }
  pen.fillStyle = css("--ink");
  for (const [name, at] of rows) pen.fillText(name, 6, at);
  pen.strokeStyle = css("--select");
  pen.beginPath();
  pen.moveTo(x(cursor, width), 0); pen.lineTo(x(cursor, width), height); pen.stroke();
}
let queued = false;
function draw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; drawMap(); drawOccupancy(); drawLanes(); });
}

// ---- moving ------------------------------------------------------------------------
function zoom(factor, around) {
  const span = Math.min(stepCount, Math.max(2, (view.to - view.from) * factor));
  const share = (around - view.from) / (view.to - view.from);
  let from = around - span * share;
  from = Math.max(0, Math.min(from, stepCount - span));
  view.from = from; view.to = from + span;
  draw();
}
function pan(delta) {
  const span = view.to - view.from;
  view.from = Math.max(0, Math.min(view.from + delta, stepCount - span));
  view.to = view.from + span;
  draw();
}
function hit(event) {
  const box = $("map-canvas").getBoundingClientRect();
  const top = Math.max(1, Math.min(capacity, capture.alternate_peak_bytes * 1.04 || capacity));
  const step = stepAt(event.clientX - box.left, box.width);
  const offset = (1 - (event.clientY - box.top) / box.height) * top;
  return visible().find((i) => {
    const b = buffers[i];
    return b.start <= step && step < b.end && b.offset <= offset && offset < b.offset + b.size;
  });
}
function tip(event, html) {
  const box = $("tip");
  if (!html) { box.style.display = "none"; return; }
  box.innerHTML = html;
  box.style.display = "block";
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
}
const map = $("map-canvas");
let drag = null;
map.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = map.getBoundingClientRect();
  zoom(event.deltaY > 0 ? 1.25 : 0.8, stepAt(event.clientX - box.left, box.width));
}, { passive: false });
map.addEventListener("pointerdown", (event) => {
  drag = { at: event.clientX, moved: false };
  map.setPointerCapture(event.pointerId);
});
map.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) { const i = hit(event); select(i === undefined ? -1 : i, false); }
  drag = null;
});
map.addEventListener("pointermove", (event) => {
  const box = map.getBoundingClientRect();
  if (drag) {
    const delta = drag.at - event.clientX;
    if (Math.abs(delta) > 3 || drag.moved) {
      drag.moved = true;
      pan((delta / box.width) * (view.to - view.from));
      drag.at = event.clientX;
    }
    return;
  }
  const step = Math.min(stepCount - 1, Math.max(0, Math.floor(stepAt(event.clientX - box.left, box.width))));
  cursor = step;
  const i = hit(event);
  const where = `step ${step}: <code>${escapeText(steps.names[step] || "")}</code>`;
  tip(event, i === undefined ? where : `<b>${escapeText(buffers[i].value)}</b> (${escapeText(kindText(buffers[i].kind))})<br>${bytes(buffers[i].size)} at ${buffers[i].offset}, steps ${buffers[i].start}–${buffers[i].end}<br>${where}`);
  drawLanes();
});
map.addEventListener("pointerleave", () => tip(null, ""));
map.addEventListener("keydown", (event) => {
  const span = view.to - view.from;
  const act = {
    ArrowLeft: () => pan(-span / 8), ArrowRight: () => pan(span / 8),
    "+": () => zoom(0.7, (view.from + view.to) / 2), "=": () => zoom(0.7, (view.from + view.to) / 2),
    "-": () => zoom(1.4, (view.from + view.to) / 2), Home: () => { view.from = 0; view.to = stepCount; draw(); },
    n: () => next(1), p: () => next(-1), Escape: () => select(-1, false),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});
function next(direction) {
  if (!byStart.length) return;
  const at = byStart.indexOf(selected);
  select(byStart[(at + direction + byStart.length) % byStart.length], true);
}

// ---- selection and search ----------------------------------------------------------
function select(i, reveal) {
  selected = i;
  const detail = $("detail");
  document.querySelectorAll("tr.selected").forEach((r) => r.classList.remove("selected"));
  if (i < 0) {
    detail.textContent = "Select a buffer in the map or in a table to see its life.";
    draw();
    return;
  }
  const b = buffers[i];
  document.querySelectorAll(`tr[data-buffer="${i}"]`).forEach((r) => r.classList.add("selected"));
  if (reveal && (b.end < view.from || b.start > view.to)) {
    const span = view.to - view.from;
    view.from = Math.max(0, Math.min((b.start + b.end) / 2 - span / 2, stepCount - span));
    view.to = view.from + span;
  }
  const mine = [b.copy_in, ...b.copy_out].filter((n) => n >= 0).map((n) => copies[n]);
  const others = buffers.filter((o, k) => k !== i && o.value === b.value).length;
  const rows = [
    ["size", `${bytes(b.size)} (${b.size} B) at offset ${b.offset}`],
    ["steps", `${b.start}–${b.end} (${escapeText(steps.names[b.start] || "")} … ${escapeText(steps.names[Math.max(b.start, b.end - 1)] || "")})`],
    ["shape", escapeText(b.shape)], ["kind", escapeText(kindText(b.kind))], ["instruction", escapeText(b.name)],
    ["used by", escapeText(b.uses.slice(0, 12).join(", ") + (b.use_count > 12 ? ` … ${b.use_count} in all` : ""))],
    ["saves", b.seconds > 0 ? seconds(b.seconds) : ""],
    ["other stays", others ? `${others} (search for its name to see them)` : ""],
    ["operation", escapeText(b.op_name || "")], ["source", escapeText(b.source || "")],
    ["copies", mine.length ? mine.slice(0, 8).map((c) => `${escapeText(kindText(c.kind))}, steps ${c.start_step} to ${c.done_step}${c.stall ? `, waits ${seconds(c.stall)}` : ""}`).join("; ") : "none"],
  ].filter((row) => row[1]);
  detail.innerHTML = `<b>${escapeText(b.value)}</b><dl>${rows.map((r) => `<dt>${r[0]}</dt><dd>${r[1]}</dd>`).join("")}</dl>`;
  draw();
}
$("search").addEventListener("input", (event) => {
  const text = event.target.value.trim().toLowerCase();
  matches = null;
  if (text) {
    matches = new Set();
    buffers.forEach((b, i) => {
      if (`${b.value} ${b.name} ${b.op_name} ${b.source} ${b.shape} ${b.uses.join(" ")}`.toLowerCase().includes(text)) matches.add(i);
    });
  }
  $("found").textContent = matches ? `${matches.size} in fast memory` : "";
  for (const filter of tables) filter(text);
  draw();
});
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && matches && matches.size) {
    const list = [...matches];
    select(list[(list.indexOf(selected) + 1) % list.length], true);
  }
});
$("axis").addEventListener("click", (event) => {
  view.byTime = !view.byTime;
  event.target.setAttribute("aria-pressed", String(view.byTime));
  draw();
});
$("zoom-in").addEventListener("click", () => zoom(0.7, (view.from + view.to) / 2));
$("zoom-out").addEventListener("click", () => zoom(1.4, (view.from + view.to) / 2));
$("zoom-all").addEventListener("click", () => { view.from = 0; view.to = stepCount; draw(); });

// ---- tables ------------------------------------------------------------------------
const PAGE = 15;
const tables = [];
function table(host, caption, columns, rows) {
  const state = { rows: rows.slice(), shown: PAGE, order: -1, down: true };
  const box = document.createElement("div");
  box.className = "scroll";
  host.append(box);
  function paint() {
    const head = columns.map((c, i) => `<th scope="col" class="${c.num ? "num" : ""}"><button data-sort="${i}">${c.title}</button></th>`).join("");
    const body = state.rows.slice(0, state.shown).map((row) => {
      const mark = row.buffer >= 0 ? ` data-buffer="${row.buffer}" tabindex="0"` : "";
      return `<tr${mark}>${columns.map((c) => `<td class="${c.num ? "num" : c.wrap ? "wrap" : ""}" data-label="${c.title}">${c.show(row)}</td>`).join("")}</tr>`;
    }).join("");
    const rest = state.rows.length - state.shown;
    box.innerHTML = `<table><caption>${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>${rest > 0 ? `<button class="more">${rest} more</button>` : ""}`;
  }
  box.addEventListener("click", (event) => {
    const sort = event.target.dataset.sort;
    if (sort !== undefined) {
      state.down = state.order === +sort ? !state.down : true;
      state.order = +sort;
      const key = columns[state.order].key;
      state.rows.sort((a, b) => (key(a) < key(b) ? 1 : key(a) > key(b) ? -1 : 0) * (state.down ? 1 : -1));
      paint();
    } else if (event.target.className === "more") {
      state.shown += 200;
      paint();
    } else {
      const row = event.target.closest("tr[data-buffer]");
      if (row) select(+row.dataset.buffer, true);
    }
  });
  box.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr[data-buffer]");
    if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); select(+row.dataset.buffer, true); }
  });
  tables.push((wanted) => {
    state.rows = wanted ? rows.filter((r) => textOf(r).includes(wanted)) : rows.slice();
    state.order = -1;
    state.shown = PAGE;
    paint();
  });
  paint();
}
const texts = new WeakMap();
function textOf(row) {
  if (!texts.has(row)) texts.set(row, Object.values(row).flat().filter((v) => typeof v === "string").join(" ").toLowerCase());
  return texts.get(row);
}
const bufferOf = new Map();
buffers.forEach((b, i) => { if (!bufferOf.has(b.value)) bufferOf.set(b.value, i); });
const named = { title: "buffer", key: (r) => r.value, show: (r) => `<code>${escapeText(r.value)}</code>` };
const sized = { title: "bytes", num: true, key: (r) => r.bytes, show: (r) => bytes(r.bytes) };
const reason = { title: "why", wrap: true, key: (r) => r.reason, show: (r) => [escapeText(r.reason), ...(r.details || []).map((line) => `<small>${escapeText(line)}</small>`)].join("<br>") };
const withBuffer = (rows) => rows.map((r) => ({ ...r, buffer: bufferOf.has(r.value) ? bufferOf.get(r.value) : -1 }));
const placed = { title: "source", wrap: true, key: (r) => r.source, show: (r) => escapeText(r.source) };
const effect = (title) => ({ title, num: true, key: (r) => Math.abs(r.seconds), show: (r) => seconds(Math.abs(r.seconds)) });
const counted = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
// Captures keep this many rows of each kind (MAX_EFFECTS).
const kept = (rows) => (rows.length < 2000 ? "" : "the first ") + counted(rows.length, "value");
if ($("wins")) table($("wins"), `${kept(capture.wins)} in fast memory, by time saved`, [named, sized, effect("saved"), reason, placed], withBuffer(capture.wins));
if ($("losses")) table($("losses"), `${kept(capture.losses)} in slow memory, by time that fast memory would save`, [named, sized, effect("would save"), reason, placed], withBuffer(capture.losses));
if ($("peak")) {
  let fullest = 0;
  capture.occupancy.forEach((n, s) => { if (n > capture.occupancy[fullest]) fullest = s; });
  const live = buffers.map((b, i) => ({ ...b, buffer: i, bytes: b.size })).filter((b) => b.start <= fullest && fullest < b.end);
  live.sort((a, b) => b.bytes - a.bytes);
  const share = { title: "share", num: true, key: (r) => r.bytes, show: (r) => `${((100 * r.bytes) / capacity).toFixed(1)} %` };
  const until = { title: "steps", num: true, key: (r) => r.start, show: (r) => `${r.start}–${r.end}` };
  table($("peak"), `fullest at step ${fullest}, <code>${escapeText(steps.names[fullest] || "")}</code>: ${bytes(capture.occupancy[fullest] || 0)} in ${counted(live.length, "buffer")}`, [named, sized, share, until, placed], live);
}
if ($("copies")) table($("copies"), `${copies.length} copies`, [
  { title: "kind", key: (r) => r.kind, show: (r) => escapeText(kindText(r.kind)) }, named, sized,
  { title: "start", num: true, key: (r) => r.start_step, show: (r) => r.start_step },
  { title: "done", num: true, key: (r) => r.done_step, show: (r) => r.done_step },
  { title: "offset", num: true, key: (r) => r.offset, show: (r) => (r.offset === null || r.offset < 0 ? "" : r.offset) },
  { title: "waits", num: true, key: (r) => r.stall * r.trip_count, show: (r) => (r.stall ? seconds(r.stall * r.trip_count) : "") },
  { title: "trips", num: true, key: (r) => r.trip_count, show: (r) => r.trip_count },
], withBuffer(copies));
if ($("buffers")) table($("buffers"), `${counted(buffers.length, "stay")} in fast memory`, [
  named,
  { title: "kind", key: (r) => r.kind, show: (r) => escapeText(kindText(r.kind)) },
  { title: "bytes", num: true, key: (r) => r.size, show: (r) => bytes(r.size) },
  { title: "offset", num: true, key: (r) => r.offset, show: (r) => r.offset },
  { title: "steps", num: true, key: (r) => r.start, show: (r) => `${r.start}–${r.end}` },
  { title: "source", wrap: true, key: (r) => r.source || "", show: (r) => escapeText(r.source || r.op_name || "") },
], buffers.map((b, i) => ({ ...b, buffer: i })));

addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
select(-1, false);
document.documentElement.dataset.ready = String(Math.round(performance.now()));
