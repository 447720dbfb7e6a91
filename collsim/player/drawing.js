// Plays runs of collsim on one clock: topology, lanes of sends and receives, and what each rank holds.
// One renderer with two homes: a component of the app, and a page of its own. No libraries.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#6a51a3", "#7f7f7f"];
const DARK = ["#4aa8e8", "#ff9055", "#35cfa0", "#f0a3cd", "#f0d94a", "#8fd3ff", "#b7a3f0", "#b5b5b5"];
const ICONS = {
  play: "M4 2l12 7-12 7z", pause: "M4 2h4v14H4zM10 2h4v14h-4z", back: "M13 2v14L5 9zM3 2h2v14H3z",
  on: "M5 2v14l8-7zM13 2h2v14h-2z", full: "M2 2h6v2H4v4H2zM10 2h6v6h-2V4h-4zM2 10h2v4h4v2H2zM14 10h2v6h-6v-2h4z",
  save: "M8 2h2v7h3l-4 4-4-4h3zM3 14h12v2H3z",
};
let tickLength = 1; // picoseconds of one tick, the unit of all times below
const DURATION = 9000; // milliseconds for the longest run at speed 1

const sum = (deltas) => { let v = 0; return Float64Array.from(deltas, (d) => (v += d)); };
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

export function spell(ticks) {
  const ps = ticks * tickLength;
  if (ps <= 0) return "0 s";
  for (const [scale, unit] of [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"]]) {
    if (ps >= scale) return `${(ps / scale).toPrecision(4)} ${unit}`;
  }
  return `${ps} ps`;
}

function decode(run) {
  const out = { ...run };
  for (const name of ["src", "dst", "first", "count", "bytes", "released", "started", "left", "arrived", "done",
    "hopFirst", "hopLink", "hopStart", "hopEnd", "srcStep", "stepLabel",
    "labelNumbers", "stepRank", "stepChannel", "stepBegin", "stepEnd", "stepLine", "stepSource"]) {
    out[name] = sum(run[name]);
  }
  const size = run.ranks * run.chunks;
  out.has = new Float64Array(size).fill(Infinity); // when each rank has each chunk
  out.comes = new Float64Array(size).fill(Infinity); // when its bytes begin to come in
  run.held.forEach(([from, to], rank) => {
    out.has.fill(-1, rank * run.chunks + from, rank * run.chunks + to);
    out.comes.fill(-1, rank * run.chunks + from, rank * run.chunks + to);
  });
  for (let t = 0; t < out.src.length; t++) {
    const begins = Math.max(out.started[t], out.arrived[t] - (out.left[t] - out.started[t]));
    for (let c = out.first[t]; c < out.first[t] + out.count[t]; c++) {
      const cell = out.dst[t] * run.chunks + c;
      if (out.done[t] < out.has[cell]) { out.has[cell] = out.done[t]; out.comes[cell] = begins; }
    }
  }
  out.labelFirst = new Int32Array(out.stepLabel.length + 1); // where each step's numbers begin
  const gaps = run.labels.map((text) => text.split("#").length - 1);
  out.stepLabel.forEach((which, s) => { out.labelFirst[s + 1] = out.labelFirst[s] + gaps[which]; });
  out.onPath = new Uint8Array(out.src.length);
  run.path.forEach((t) => { out.onPath[t] = 1; });
  out.order = Array.from(out.started.keys()).sort((a, b) => out.started[a] - out.started[b] || b - a);
  return out;
}

function eventTimes(runs) {
  const times = new Set([0]);
  for (const run of runs) for (const column of [run.started, run.done]) for (const t of column) times.add(t);
  return Float64Array.from(times).sort();
}

// The index of the last value that is not above `x`.
function lastUpTo(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) { const mid = (low + high) >> 1; if (sorted[mid] <= x) low = mid + 1; else high = mid; }
  return low - 1;
}

function fit(canvas, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = Math.max(50, canvas.clientWidth);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return [g, width, height];
}

function drawTopology(canvas, data, run, now, look) {
  const [g, width, height] = fit(canvas, look.race ? 230 : 300);
  const pad = 30, scale = Math.min((width - 2 * pad) / data.aspect, height - 2 * pad);
  const wide = Math.min(width - 2 * pad, scale * data.aspect);
  const at = (n) => [
    (width - wide) / 2 + data.nodes[n][2] * wide, height - (height - scale) / 2 - data.nodes[n][3] * scale,
  ];
  const many = data.nodes.length > 70, radius = many ? 5 : 15;
  for (let l = 0; l < data.links.length; l++) {
    const [u, v] = data.links[l];
    if (u === v || u < 0) continue;
    const [a, b] = lane(at(u), at(v), many ? 1.5 : 4);
    stroke(g, a, b, look.faint, 1 + 5 * run.busy[l]);
  }
  for (let t = 0; t < run.src.length; t++) {
    if (run.started[t] > now || run.done[t] <= now) continue;
    const colour = look.colours[run.first[t] % look.colours.length];
    for (let h = run.hopFirst[t]; h < run.hopFirst[t + 1]; h++) {
      const latency = data.linkLatency[run.hopLink[h]], leaves = run.hopEnd[h] + latency;
      if (run.hopStart[h] > now || leaves < now) continue;
      const [u, v] = data.links[run.hopLink[h]];
      const part = (now - run.hopStart[h]) / Math.max(1, leaves - run.hopStart[h]);
      const rear = now > run.hopEnd[h] && latency ? Math.min(part, (now - run.hopEnd[h]) / latency) : 0;
      if (u === v) { ring(g, at(u), radius + 5, colour, part); continue; }
      const [a, b] = lane(at(u), at(v), many ? 1.5 : 4);
      const on = (f) => [a[0] + (b[0] - a[0]) * f, a[1] + (b[1] - a[1]) * f];
      const tip = on(part), tail = on(rear);
      if (run.onPath[t]) stroke(g, tail, tip, look.ink, many ? 6 : 10);
      stroke(g, tail, tip, colour, many ? 4 : 7);
      g.setLineDash([6, 8]); g.lineDashOffset = -now / (run.makespan || 1) * 900;
      stroke(g, tail, tip, look.paper, 1.5);
      g.setLineDash([]);
      if (!many && (run.chunks > 1 || Math.hypot(tip[0] - tail[0], tip[1] - tail[1]) < 12)) disc(g, tip, 10, colour, look.paper, String(run.first[t]));
    }
  }
  data.nodes.forEach((node, n) => {
    const place = at(n);
    if (!node[1]) { square(g, place, many ? 4 : 11, look.switch); return; }
    disc(g, place, radius, look.panel, look.ink, many || node[4].length > 4 ? "" : node[4].join(" "), look.ink);
    if (node[4].length) ring(g, place, radius, look.accent, held(run, node[4], now));
  });
}

// How much of what it will ever hold the ranks of a host hold.
function held(run, ranks, now) {
  let has = 0, all = 0;
  for (const rank of ranks) {
    for (let c = rank * run.chunks; c < (rank + 1) * run.chunks; c++) {
      if (run.has[c] === Infinity) continue;
      all += 1;
      has += run.has[c] <= now ? 1 : clamp((now - run.comes[c]) / (run.has[c] - run.comes[c]), 0, 1);
    }
  }
  return all ? has / all : 1;
}

// The two directions of a link run side by side.
function lane([ax, ay], [bx, by], offset) {
  const long = Math.hypot(bx - ax, by - ay) || 1;
  const dx = (-(by - ay) / long) * offset, dy = ((bx - ax) / long) * offset;
  return [[ax + dx, ay + dy], [bx + dx, by + dy]];
}

function stroke(g, a, b, colour, width) {
  g.strokeStyle = colour; g.lineWidth = width;
  g.beginPath(); g.moveTo(a[0], a[1]); g.lineTo(b[0], b[1]); g.stroke();
}

function ring(g, [x, y], radius, colour, part) {
  g.strokeStyle = colour; g.lineWidth = 4;
  g.beginPath(); g.arc(x, y, radius, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * clamp(part, 0, 1)); g.stroke();
}

function disc(g, [x, y], radius, fill, ink, text, border) {
  g.fillStyle = fill; g.beginPath(); g.arc(x, y, radius, 0, 7); g.fill();
  if (border) { g.strokeStyle = border; g.globalAlpha = 0.35; g.lineWidth = 1.5; g.stroke(); g.globalAlpha = 1; }
  if (!text) return;
  g.fillStyle = ink; g.font = `600 ${text.length > 3 ? 9 : 12}px system-ui, sans-serif`;
  g.textAlign = "center"; g.textBaseline = "middle"; g.fillText(text, x, y + 0.5);
}

function square(g, [x, y], half, fill) {
  g.fillStyle = fill; g.fillRect(x - half, y - half, 2 * half, 2 * half);
}

// Lanes: a rank's sends in the upper half of its row, its receives in the lower half. Drawn once.
function lanesPicture(run, width, height, longest, look) {
  const picture = document.createElement("canvas");
  const ratio = globalThis.devicePixelRatio || 1;
  picture.width = width * ratio; picture.height = height * ratio;
  const g = picture.getContext("2d");
  g.scale(ratio, ratio);
  const row = (height - 22) / run.ranks, x = (ps) => 34 + (width - 44) * ps / longest;
  g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle"; g.textAlign = "right";
  const every = Math.ceil(14 / row);
  for (let r = 0; r < run.ranks; r++) {
    g.fillStyle = look.faint; g.fillRect(34, row * (r + 0.5) - 0.5, x(run.finish[r]) - 34, 1);
    if (r % every === 0) { g.fillStyle = look.ink; g.fillText(String(r), 28, row * (r + 0.5)); }
  }
  for (let t = 0; t < run.src.length; t++) {
    g.fillStyle = look.colours[run.first[t] % look.colours.length];
    const wide = Math.max(1, x(run.left[t]) - x(run.started[t]) - 0.5);
    g.fillRect(x(run.started[t]), row * (run.src[t] + 0.12), wide, row * 0.36);
    const begins = Math.max(run.started[t], run.arrived[t] - (run.left[t] - run.started[t]));
    g.globalAlpha = 0.55;
    g.fillRect(x(begins), row * (run.dst[t] + 0.5), Math.max(1, x(run.done[t]) - x(begins) - 0.5), row * 0.36);
    g.globalAlpha = 1;
    if (run.src.length > 3000 && !run.onPath[t]) continue;
    const from = [x(run.started[t]), row * (run.src[t] + 0.5)], to = [x(run.done[t]), row * (run.dst[t] + 0.5)];
    g.globalAlpha = run.onPath[t] ? 1 : 0.35;
    stroke(g, from, to, look.ink, run.onPath[t] ? 1.8 : 0.7);
    g.globalAlpha = 1;
  }
  g.fillStyle = look.ink; g.textAlign = "left"; g.fillText("0", 34, height - 9);
  g.textAlign = "right"; g.fillText(spell(longest), width - 6, height - 9);
  return picture;
}

function drawLanes(canvas, run, now, longest, look, cache) {
  const [g, width, height] = fit(canvas, look.race ? 130 : 300);
  const key = `${width} ${height} ${look.ink} ${look.paper}`;
  if (cache.key !== key) { cache.key = key; cache.picture = lanesPicture(run, width, height, longest, look); }
  g.drawImage(cache.picture, 0, 0, width, height);
  const x = 34 + (width - 44) * Math.min(now, longest) / longest;
  stroke(g, [x, 0], [x, height - 20], look.accent, 2);
}

// What each rank holds: a row a rank, a column a chunk; cells fill as bytes come in.
function drawMatrix(canvas, run, now, look) {
  const tall = clamp(run.ranks * 16, 60, look.race ? 140 : 200);
  const [g, width, height] = fit(canvas, tall);
  const w = (width - 44) / run.chunks, h = height / run.ranks, gap = w > 5 && h > 5 ? 1 : 0;
  g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
  const every = Math.ceil(14 / h);
  for (let r = 0; r < run.ranks; r++) {
    if (r % every === 0) { g.fillStyle = look.ink; g.textAlign = "right"; g.fillText(String(r), 34, h * (r + 0.5)); }
    for (let c = 0; c < run.chunks; c++) {
      const has = run.has[r * run.chunks + c], comes = run.comes[r * run.chunks + c];
      g.fillStyle = look.faint;
      if (gap) g.fillRect(44 + c * w, r * h + gap, w - gap, h - 2 * gap);
      const part = has <= now ? 1 : comes <= now ? (now - comes) / (has - comes) : 0;
      if (!part) continue;
      g.fillStyle = look.colours[c % look.colours.length];
      g.globalAlpha = has <= now ? 1 : 0.6;
      g.fillRect(44 + c * w, r * h + gap, (w - gap) * part, h - 2 * gap);
      g.globalAlpha = 1;
      if (part === 1 && w > 17 && h > 13) {
        g.fillStyle = look.paper; g.textAlign = "center"; g.fillText(String(c), 44 + c * w + w / 2, h * (r + 0.5));
      }
    }
  }
}

// A step's label: its text with the numbers filled in.
function label(run, step) {
  let next = run.labelFirst[step];
  return run.labels[run.stepLabel[step]].replace(/#/g, () => run.labelNumbers[next++]).replace(/№/g, "#");
}

// What the algorithm itself says about the messages under way: the one sent last, first.
function narration(run, now) {
  if (now >= run.makespan) {
    const last = run.finish.indexOf(Math.max(...run.finish));
    return `Done after ${spell(run.makespan)}; rank ${last} is the last.`;
  }
  const said = [];
  for (let i = run.order.length - 1; i >= 0 && said.length < 2; i--) {
    const t = run.order[i];
    if (run.started[t] > now || run.done[t] <= now) continue;
    const text = label(run, run.srcStep[t]);
    if (text && !said.includes(text)) said.push(text);
  }
  return said.join(" · ");
}

function details(run, data, t) {
  const route = [];
  for (let h = run.hopFirst[t]; h < run.hopFirst[t + 1]; h++) route.push(data.linkNames[run.hopLink[h]]);
  const last = run.first[t] + run.count[t] - 1;
  const what = run.count[t] === 0 ? "no chunks" : run.count[t] === 1 ? `chunk ${last}` : `chunks ${run.first[t]}–${last}`;
  return `rank ${run.src[t]} → rank ${run.dst[t]}: ${what}, ${run.bytes[t].toLocaleString("en")} B\n`
    + `sent ${spell(run.started[t])}, left ${spell(run.left[t])}, done ${spell(run.done[t])}\n`
    + `waited ${spell(run.started[t] - run.released[t])} for its link\n${route.join(", ")}`
    + (run.onPath[t] ? "\non the critical path" : "");
}
