// Steps through one run: by hand, by the slider, or played.

const PLAY_MS = 9000; // a whole run, however many events
const TICK_MS = 40;

const WORDS = {
  registered: "is registered", fired: "fires", changed: "changes the value", removed: "is taken off",
  error: "raises an error",
};

function makePlayer(root, life) {
  const find = (selector) => root.querySelector(selector);
  const player = { range: find("input"), select: find("select"), button: find(".play"), timer: 0 };
  player.stop = () => {
    clearInterval(player.timer);
    player.timer = 0;
    player.button.textContent = "▶\uFE0E Play";
  };
  player.play = () => {
    const last = life.run.events.length - 1;
    if (last < 1) return;
    if (life.step >= last) life.goTo(0);
    const per = Math.max(1, Math.round((last * TICK_MS) / PLAY_MS));
    const wait = per > 1 ? TICK_MS : Math.min(260, Math.max(TICK_MS, PLAY_MS / last));
    player.button.textContent = "❚❚ Pause";
    player.timer = setInterval(() => {
      life.goTo(Math.min(last, life.step + per));
      if (life.step >= last) player.stop();
    }, wait);
  };
  player.toggle = () => (player.timer ? player.stop() : player.play());
  player.button.addEventListener("click", player.toggle);
  player.range.addEventListener("input", () => {
    player.stop();
    life.goTo(Number(player.range.value));
  });
  player.select.addEventListener("change", () => {
    life.choose(life.runs.find((run) => run.number === Number(player.select.value)));
  });
  for (const button of root.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => {
      player.stop();
      life.goTo(life.step + Number(button.dataset.step));
    });
  }
  for (const button of root.querySelectorAll("[data-run]")) {
    button.addEventListener("click", () => {
      const next = life.runs[life.runs.indexOf(life.run) + Number(button.dataset.run)];
      if (next) life.choose(next);
    });
  }
  root.addEventListener("keydown", (key) => onPlayerKey(player, life, key));
  return player;
}

function onPlayerKey(player, life, key) {
  const field = key.target.closest("input, select");
  const button = key.target.closest("button");
  if (key.key === " " && field === player.range) player.toggle();
  else if (!field && key.key === "ArrowLeft") life.goTo(life.step - 1);
  else if (!field && key.key === "ArrowRight") life.goTo(life.step + 1);
  else return;
  if (key.key !== " " && button !== player.button) player.stop();
  key.preventDefault();
}

function fillRuns(player, life) {
  const names = life.runs.map((run) => {
    const option = element("option", "", `${run.number} · ${run.title}`);
    option.value = run.number;
    return option;
  });
  player.select.replaceChildren(...names);
}

function fillRun(root, player, life) {
  const { run } = life;
  const find = (selector) => root.querySelector(selector);
  player.select.value = run.number;
  const place = life.runs.indexOf(run);
  find("[data-run='-1']").disabled = place === 0;
  find("[data-run='1']").disabled = place === life.runs.length - 1;
  player.range.max = Math.max(0, run.events.length - 1);
  const begun = new Date(run.started).toLocaleTimeString();
  const facts = [
    run.page, begun, `${whole.format(run.records.length)} hooks`,
    `${whole.format(run.events.length)} events`, run.live ? `${run.live} live` : moment(run.seconds),
  ];
  find(".facts").textContent = facts.filter(Boolean).join(" · ");
  find(".failure").hidden = !run.failed;
  find(".failure").replaceChildren(element("span", "bad", "Run failed: "), run.failed ?? "");
}

function fillEvent(root, player, life) {
  const { run, event, step } = life;
  const find = (selector) => root.querySelector(selector);
  player.range.value = step;
  find(".place").textContent = run.events.length
    ? `${whole.format(step + 1)} of ${whole.format(run.events.length)}` : "no event";
  if (!event) {
    find(".event").textContent = "This run registered no hook.";
    return;
  }
  const words = moment(event.at);
  player.range.setAttribute("aria-valuetext", `${words}: ${labelOf(event.kind)} on ${pathOf(event.path)} ${WORDS[event.what]}`);
  const call = event.call === null || event.what === "registered" ? "" : `call #${event.call}`;
  find(".event").replaceChildren(
    element("span", "num when", words), mark(event.kind), element("b", "", labelOf(event.kind)),
    element("span", "", "on"), pathText(pathOf(event.path)),
    element("span", event.what === "error" ? "bad" : "", WORDS[event.what]),
    element("span", "grey", call), element("span", "mono grey", event.shapes),
    element("span", "grey", event.detail),
  );
}
