// The player: controls, one clock, and the life of a component. Comes after drawing.js.

function element(tag, parent, properties = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  parent.append(made);
  return made;
}

function button(parent, icon, label, act) {
  const made = element("button", parent, { type: "button", title: label, onclick: act });
  made.setAttribute("aria-label", label);
  made.innerHTML = `<svg viewBox="0 0 18 18" aria-hidden="true"><path d="${ICONS[icon]}"/></svg>`;
  return made;
}

// The program of one rank, with the line lit that its current step comes from.
function codePanel(box, run) {
  if (!run.sources.some(Boolean)) return null;
  const panel = element("details", box, { className: "code" });
  const head = element("summary", panel, { textContent: "The program, at rank " });
  const rank = element("select", head, { onclick: (e) => e.stopPropagation() });
  rank.setAttribute("aria-label", "Rank whose line is lit");
  for (let r = 0; r < run.ranks; r++) element("option", rank, { value: r, textContent: r });
  const body = element("pre", panel);
  let shown = -1, seen = "";
  function light(now) {
    if (!panel.open) return;
    let step = -1;
    for (let s = 0; s < run.stepRank.length; s++) {
      if (run.stepRank[s] !== Number(rank.value) || run.stepBegin[s] > now) continue;
      if (step < 0 || run.stepBegin[s] >= run.stepBegin[step]) step = s;
    }
    const source = run.sources[step < 0 ? 0 : run.stepSource[step]];
    const done = step < 0 || run.stepEnd[step] <= now;
    const key = `${rank.value} ${step} ${done}`;
    if (key === seen || !source) return;
    seen = key;
    if (shown !== source) {
      body.replaceChildren(...source.text.map((text) => Object.assign(document.createElement("span"), { textContent: `${text}\n` })));
      shown = source;
    }
    source.numbers.forEach((number, i) => body.children[i].classList.toggle("lit", !done && number === run.stepLine[step]));
  }
  return { light };
}

export function createPlayer(root, data) {
  tickLength = data.tick;
  const runs = data.runs.map(decode);
  const race = runs.length > 1;
  const longest = Math.max(1, ...runs.map((run) => run.makespan));
  const events = eventTimes(runs);
  const state = { now: 0, playing: false, speed: 1, paced: false, stamp: 0, frame: 0 };
  const alone = !(root.getRootNode() instanceof ShadowRoot);
  const box = element("section", root, { className: `collsim${race ? " race" : ""}${alone ? " alone" : ""}`, tabIndex: 0 });
  box.setAttribute("aria-label", "Animation of messages; space plays, arrow keys step");
  const head = element("header", box);
  element("strong", head, { textContent: data.question || data.about });
  if (data.question) element("span", head, { textContent: data.about });
  const stages = element("div", box, { className: "stages" });
  stages.style.gridTemplateColumns = race ? `repeat(auto-fit, minmax(300px, 1fr))` : "minmax(0, 1fr)";
  const tip = element("div", box, { className: "tip" });
  const views = runs.map((run) => {
    const card = element("article", stages, { className: "run" });
    const title = element("h3", card);
    element("span", title, { textContent: run.name });
    const when = element("span", title, { className: "when" });
    const grid = element("div", card, { className: "views" });
    const [topology, lanes] = ["topology", "lanes"].map((name) => element("canvas", grid, { className: name }));
    const matrix = element("canvas", card, { className: "matrix" });
    lanes.onclick = (e) => seek((e.offsetX - 34) / (lanes.clientWidth - 44) * longest);
    lanes.onpointermove = (e) => hover(run, lanes, e);
    lanes.onpointerleave = () => { tip.style.display = "none"; };
    return { run, when, topology, lanes, matrix, cache: {} };
  });
  const said = element("p", box, { className: "said" });
  said.setAttribute("aria-live", "polite");
  const bar = element("div", box, { className: "bar" });
  button(bar, "back", "Step back (left arrow)", () => step(-1));
  const play = button(bar, "play", "Play or pause (space)", () => toggle());
  button(bar, "on", "Step on (right arrow)", () => step(1));
  const slider = element("input", bar, { type: "range", min: 0, max: 10000, value: 0, oninput: () => seek(slider.value / 10000 * longest) });
  slider.setAttribute("aria-label", "Time");
  const shown = element("output", bar);
  const speed = element("select", bar, { onchange: () => { state.speed = Number(speed.value); } });
  speed.setAttribute("aria-label", "Speed");
  for (const s of [0.25, 0.5, 1, 2, 4]) element("option", speed, { value: s, textContent: `${s} ×`, selected: s === 1 });
  const paced = element("button", bar, { type: "button", textContent: "even pace", title: "Give every event the same time", onclick: () => {
    state.paced = !state.paced; paced.setAttribute("aria-pressed", String(state.paced));
  } });
  paced.setAttribute("aria-pressed", "false");
  button(bar, "save", "Save this picture as PNG", () => savePicture());
  button(bar, "full", "Full screen", () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen()));
  const code = race ? null : codePanel(box, runs[0]);
  element("footer", box, { textContent: `predicted; lower bound ${spell(data.bound)} (${data.boundReason}); ${data.provenance}` });

  function look() {
    const style = getComputedStyle(box);
    const ink = style.color, paper = style.backgroundColor;
    const light = (paper.match(/[\d.]+/g) || [255, 255, 255]).slice(0, 3).reduce((a, b) => a + Number(b), 0) > 382;
    return {
      race, ink, paper, panel: style.getPropertyValue("--panel"), accent: style.getPropertyValue("--accent"),
      faint: light ? "#d5dae3" : "#394150", switch: light ? "#5b6577" : "#8d97a8", colours: light ? LIGHT : DARK,
    };
  }

  function draw() {
    const seen = look();
    let active = 0;
    for (const view of views) {
      const { run } = view;
      drawTopology(view.topology, data, run, state.now, seen);
      drawLanes(view.lanes, run, state.now, longest, seen, view.cache);
      drawMatrix(view.matrix, run, state.now, seen);
      view.when.textContent = state.now >= run.makespan ? `done: ${spell(run.makespan)}` : spell(Math.min(state.now, run.makespan));
      for (let t = 0; t < run.src.length; t++) if (run.started[t] <= state.now && run.done[t] > state.now) active += 1;
    }
    slider.value = state.now / longest * 10000;
    shown.textContent = `${spell(state.now)} of ${spell(longest)}`;
    const text = runs.map((run) => (race ? `${run.name}: ` : "") + narration(run, state.now)).join("\n");
    if (said.textContent !== text) { said.textContent = text; said.style.whiteSpace = "pre-line"; }
    code?.light(state.now);
    Object.assign(box.dataset, { time: Math.round(state.now * tickLength), playing: state.playing, active });
  }

  function tick(stamp) {
    const passed = Math.min(100, stamp - state.stamp) * state.speed / DURATION;
    state.stamp = stamp;
    if (state.paced) {
      const place = lastUpTo(events, state.now), last = events.length - 1;
      const gap = place < last ? events[place + 1] - events[place] : 1;
      let index = place + (state.now - events[place]) / gap + passed * last;
      if (index >= last) index = last;
      const whole = Math.floor(index);
      state.now = whole >= last ? longest : events[whole] + (index - whole) * (events[whole + 1] - events[whole]);
    } else state.now += passed * longest;
    if (state.now >= longest) { state.now = longest; set(false); }
    draw();
    if (state.playing) state.frame = requestAnimationFrame(tick);
  }

  function set(playing) {
    state.playing = playing;
    play.querySelector("path").setAttribute("d", ICONS[playing ? "pause" : "play"]);
    cancelAnimationFrame(state.frame);
    if (playing) { state.stamp = performance.now(); state.frame = requestAnimationFrame(tick); }
  }
  function toggle() { if (!state.playing && state.now >= longest) state.now = 0; set(!state.playing); draw(); }
  function seek(ps) { state.now = clamp(ps, 0, longest); draw(); }
  function step(way) {
    set(false);
    const place = lastUpTo(events, state.now);
    const before = events[place] === state.now ? place - 1 : place;
    seek(way > 0 ? events[Math.min(place + 1, events.length - 1)] : events[Math.max(0, before)]);
  }

  function hover(run, canvas, e) {
    const row = Math.floor(e.offsetY / ((canvas.clientHeight - 22) / run.ranks));
    const upper = e.offsetY / ((canvas.clientHeight - 22) / run.ranks) - row < 0.5;
    const at = (e.offsetX - 34) / (canvas.clientWidth - 44) * longest;
    for (let t = run.src.length - 1; t >= 0; t--) {
      const begins = upper ? run.started[t] : Math.max(run.started[t], run.arrived[t] - (run.left[t] - run.started[t]));
      const ends = upper ? run.left[t] : run.done[t];
      if ((upper ? run.src[t] : run.dst[t]) !== row || at < begins || at > ends) continue;
      tip.textContent = details(run, data, t);
      Object.assign(tip.style, { display: "block", left: `${e.clientX + 14}px`, top: `${e.clientY + 14}px` });
      return;
    }
    tip.style.display = "none";
  }

  function savePicture() {
    const canvases = views.flatMap((view) => [view.topology, view.lanes, view.matrix]);
    const whole = document.createElement("canvas");
    whole.width = Math.max(...canvases.map((c) => c.width));
    whole.height = canvases.reduce((tall, c) => tall + c.height, 0);
    const g = whole.getContext("2d");
    g.fillStyle = look().paper; g.fillRect(0, 0, whole.width, whole.height);
    let y = 0;
    for (const c of canvases) { g.drawImage(c, 0, y); y += c.height; }
    const link = document.createElement("a");
    link.download = "collsim.png"; link.href = whole.toDataURL("image/png"); link.click();
  }

  box.addEventListener("keydown", (e) => {
    e.stopPropagation(); // the app around has keys of its own
    if (e.target.closest("summary")) return;
    const acts = { " ": toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => seek(0), End: () => seek(longest) };
    if (e.target.tagName === "SELECT" || (e.target.tagName === "INPUT" && e.key !== " ") || !acts[e.key]) return;
    e.preventDefault();
    acts[e.key]();
  });
  const watcher = new ResizeObserver(() => draw());
  watcher.observe(box);
  draw();
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) set(true);
  return { redraw: draw, destroy() { set(false); watcher.disconnect(); box.remove(); } };
}

const players = new WeakMap(); // by the element that a player lives in

export default function mount({ parentElement, data }) {
  const known = players.get(parentElement);
  if (known && known.text === data) { known.player.redraw(); return known.leave; }
  known?.player.destroy();
  const player = createPlayer(parentElement.querySelector(".here") || parentElement, JSON.parse(data));
  const leave = () => { player.destroy(); players.delete(parentElement); };
  players.set(parentElement, { text: data, player, leave });
  return leave;
}
