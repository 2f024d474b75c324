"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const folds = all("details");
  for (const fold of folds) fold.open = false;
  document.documentElement.classList.remove("js");

  // On paper everything is unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = folds.filter((fold) => !fold.open);
    for (const fold of folded) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of folded) fold.open = false;
  });

  const controls = one("controls");
  if (!controls) {
    return;
  }
  controls.hidden = false;
  const rows = all("tbody.row");
  const tables = all("table.list");
  const risks = ["high", "medium", "low", "none"];
  const text = new Map();
  const order = new Map(rows.map((row, number) => [row, number]));
  const boxes = all("input[name=risk]", controls);
  const fields = ["q", "rule", "api"].map(one).filter(Boolean);
  const withFindings = one("with");
  const sorting = { table: null, key: "", down: false };

  // -- filtering

  // Not the context of a diff: it is of the neighbours.
  const said = "tr:first-child, summary, .facts, .note, .code, .related .place, .evidence, .added";

  function textOf(row) {
    if (!text.has(row)) {
      const pieces = all(said, row).map((piece) => piece.textContent);
      text.set(row, pieces.join("\n").toLowerCase());
    }
    return text.get(row);
  }

  function passes(row, chosen, words) {
    const data = row.dataset;
    if (chosen.risk.length && !chosen.risk.includes(risks[data.risk])) return false;
    if (chosen.rule && !data.codes.split(" ").includes(chosen.rule)) return false;
    if (chosen.api && data.api !== chosen.api) return false;
    if (chosen.with && !data.codes) return false;
    return words.every((word) => textOf(row).includes(word));
  }

  function chosenNow() {
    const chosen = { q: "", rule: "", api: "", with: "" };
    for (const field of fields) chosen[field.id] = field.value.trim();
    chosen.risk = boxes.filter((box) => box.checked).map((box) => box.value);
    if (withFindings && withFindings.checked) chosen.with = "findings";
    return chosen;
  }

  function filter() {
    const chosen = chosenNow();
    const words = chosen.q.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = [];
    for (const table of tables) {
      const own = rows.filter((row) => row.parentNode === table);
      let count = 0;
      for (const row of own) {
        row.hidden = !passes(row, chosen, words);
        if (!row.hidden) count += 1;
      }
      table.nextElementSibling.hidden = count > 0;
      table.hidden = count === 0;
      const noun = table.id === "sites" ? "checkpoint" : "finding";
      const where = table.id === "findings" && tables.length > 1 ? " elsewhere" : "";
      counts.push(`${count} of ${own.length} ${noun}${own.length === 1 ? "" : "s"}${where}`);
    }
    one("shown").textContent = `${counts.join(", ")} shown`;
    return chosen;
  }

  // -- sorting

  const collator = new Intl.Collator("en", { numeric: true });

  function compare(key, a, b) {
    const [x, y] = [a.dataset, b.dataset];
    if (key === "saves" || key === "costs") {
      return Number(x[key] ?? -Infinity) - Number(y[key] ?? -Infinity) || 0;
    }
    if (key === "path") return collator.compare(x.path, y.path) || x.line - y.line;
    // Without a rule comes after all rules.
    if (key === "codes" && !x.codes !== !y.codes) return x.codes ? -1 : 1;
    return collator.compare(x[key] ?? "", y[key] ?? "");
  }

  function sort(table, key, down) {
    const own = all("tbody.row", table);
    // What compares as equal stays in the order of the page.
    own.sort((a, b) => (down ? -1 : 1) * compare(key, a, b) || order.get(a) - order.get(b));
    const pieces = document.createDocumentFragment();
    pieces.append(...own);
    table.append(pieces);
    for (const head of all("th[data-key]", table)) {
      if (head.dataset.key === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    Object.assign(sorting, { table: table.id, key, down });
  }

  for (const head of all("th[data-key]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const figures = head.classList.contains("num");
      // Figures begin with the largest.
      const down = now ? now === "ascending" : figures;
      sort(head.closest("table"), head.dataset.key, down);
      keep(chosenNow());
    });
  }

  // -- the address: what is chosen, or one entry

  function keep(chosen) {
    const state = new URLSearchParams();
    for (const [key, value] of Object.entries(chosen)) {
      if (value.length) state.set(key, Array.isArray(value) ? value.join(",") : value);
    }
    if (sorting.key && (sorting.key !== "risk" || sorting.down)) {
      state.set("sort", `${sorting.table} ${sorting.key} ${sorting.down ? "down" : "up"}`);
    }
    const fragment = state.size ? `#${state}` : "";
    try {
      history.replaceState(null, "", fragment || location.pathname + location.search);
    } catch {
      // A page without an address, as one in a frame, keeps nothing.
    }
  }

  function choose(state) {
    for (const field of fields) field.value = state.get(field.id) ?? "";
    const chosen = (state.get("risk") ?? "").split(",");
    for (const box of boxes) box.checked = chosen.includes(box.value);
    if (withFindings) withFindings.checked = state.has("with");
  }

  function decoded(fragment) {
    try {
      return decodeURIComponent(fragment);
    } catch {
      return fragment;
    }
  }

  function take() {
    const hash = decoded(location.hash.slice(1));
    const entry = hash && !hash.includes("=") ? one(hash) : null;
    if (entry) {
      reveal(entry);
      return;
    }
    if (hash && !hash.includes("=")) {
      filter();
      return;
    }
    const state = new URLSearchParams(location.hash.slice(1));
    choose(state);
    const [id, key, way] = (state.get("sort") ?? "").split(" ");
    const table = tables.find((each) => each.id === id);
    if (table && one(id).querySelector(`th[data-key="${CSS.escape(key)}"]`)) {
      sort(table, key, way === "down");
    }
    filter();
  }

  function reveal(entry) {
    const row = entry.closest("tbody.row");
    if (!row) return;
    filter();
    if (row.hidden) {
      choose(new URLSearchParams());
      filter();
    }
    for (const fold of all("details", row)) fold.open = true;
    entry.scrollIntoView({ block: "start" });
  }

  const changed = () => keep(filter());
  let waiting = 0;
  one("q").addEventListener("input", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(changed);
  });
  controls.addEventListener("change", changed);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(changed));
  const foldAll = (open) => {
    for (const row of rows) if (!row.hidden) for (const fold of all("details", row)) fold.open = open;
  };
  one("unfold").addEventListener("click", () => foldAll(true));
  one("fold").addEventListener("click", () => foldAll(false));
  addEventListener("hashchange", () => {
    take();
    const target = location.hash.includes("=") && controls;
    if (target) target.scrollIntoView({ block: "start" });
  });
  take();
})();
