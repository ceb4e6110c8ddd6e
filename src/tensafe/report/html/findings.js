"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const words = (number) => number.toLocaleString("en-US");
  const cards = [...document.querySelectorAll("#list > .finding")];
  const texts = [];               // by number, made when the first search asks
  const boxes = [...document.querySelectorAll("#filters .boxes input")];
  const selects = ["rule", "file", "who"].map(find).filter(Boolean);

  /* ---- light and dark ---- */
  const THEMES = ["system", "light", "dark"];
  const theme = find("theme");
  let chosen = 0;
  function paint() {
    if (THEMES[chosen] === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = THEMES[chosen];
    theme.textContent = `Theme: ${THEMES[chosen]}`;
  }
  theme.addEventListener("click", () => { chosen = (chosen + 1) % THEMES.length; paint(); });
  theme.hidden = false;
  paint();
  if (!cards.length) return;

  /* ---- which findings ---- */
  const fits = (card, number, severities, query) => severities.has(card.dataset.severity)
    && selects.every((select) => !select.value || card.dataset[select.id].split(" ").includes(select.value))
    && (!query || (texts[number] ??= card.textContent.toLowerCase()).includes(query));

  function select() {
    const severities = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const query = find("query").value.trim().toLowerCase();
    let shown = 0;
    for (const [number, card] of cards.entries()) {
      card.hidden = !fits(card, number, severities, query);
      shown += !card.hidden;
    }
    find("none").hidden = shown > 0;
    const number = shown === cards.length
      ? `${words(shown)} finding${shown === 1 ? "" : "s"}` : `${words(shown)} of ${words(cards.length)} findings`;
    find("count").textContent = order.selectedIndex ? `${number}, sorted by ${order.selectedOptions[0].text}` : number;
  }

  /* ---- in which order ---- */
  const order = find("order");
  const KEYS = {                  // what comes first has the smaller numbers; equal ones stay by severity
    severity: () => [],
    file: ({ file, line }) => [Number(file), Number(line)],
    rule: ({ rule }) => [Number(rule)],
    bytes: ({ bytes }) => [-(bytes ?? 0)],
  };
  let ordered = cards;

  function sort() {
    const keys = new Map(cards.map((card) => [card, KEYS[order.value](card.dataset)]));
    const compare = (one, other) => {
      const [left, right] = [keys.get(one), keys.get(other)];
      const at = left.findIndex((key, index) => key !== right[index]);
      return at < 0 ? 0 : left[at] - right[at];
    };
    ordered = [...cards].sort(compare);
    find("list").append(...ordered);
    select();
  }

  let waiting = 0;
  function soon() {
    clearTimeout(waiting);
    if (cards.length <= 1000) select();
    else waiting = setTimeout(select, 120);
  }

  /* ---- the bodies of a long page ---- */
  const AT_ONCE = 100, MOST_OPENED = 500;
  const blocks = [...document.querySelectorAll("script.bodies")];
  const inFull = Number(find("list").dataset.full);
  const unpacked = new Map();     // block to the markup of its bodies

  async function unpack(block) {
    const bytes = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return (await new Response(stream).text()).split("\0");
  }

  async function fill(card) {
    const number = cards.indexOf(card) - inFull;
    if (number < 0 || card.dataset.filled || !blocks.length || !("DecompressionStream" in window)) return;
    card.dataset.filled = "yes";
    const block = Math.floor(number / AT_ONCE);
    if (!unpacked.has(block)) unpacked.set(block, unpack(blocks[block]));
    card.querySelector(".inside").innerHTML = (await unpacked.get(block))[number % AT_ONCE];
  }
  find("list").addEventListener("toggle", (event) => { if (event.target.open) fill(event.target); }, true);

  /* ---- hands ---- */
  const shownCards = () => ordered.filter((card) => !card.hidden);

  function move(step) {
    const shown = shownCards();
    if (!shown.length) return;
    const here = document.activeElement.closest(".finding");
    const at = here ? shown.indexOf(here) : step > 0 ? -1 : 0;
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + step))];
    next.querySelector("summary").focus();
    next.scrollIntoView({ block: "nearest" });
  }

  /* ---- single keys, which a reader may switch off (WCAG 2.1.4); the choice stays with this page ---- */
  const keys = find("keys");
  function remember() {
    find("letters").hidden = !keys.checked;
    if (keys.checked) find("query").setAttribute("aria-keyshortcuts", "/");
    else find("query").removeAttribute("aria-keyshortcuts");
    history.replaceState({ keys: keys.checked }, "");
  }
  keys.checked = history.state?.keys ?? true;
  keys.addEventListener("input", remember);
  addEventListener("hashchange", remember);     // the entry of the new address knows it, too
  remember();

  const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const search = find("query");
    if (event.key === "Escape" && event.target === search) { search.value = ""; select(); move(-Infinity); return; }
    if (typing || (event.key.length === 1 && !keys.checked)) return;
    const onSummary = event.target.tagName === "SUMMARY";
    if (event.key === "/") search.focus();
    else if (event.key in STEPS && (onSummary || event.key.length === 1)) move(STEPS[event.key]);
    else return;
    event.preventDefault();
  });

  function turn(open) { for (const card of shownCards().slice(0, open ? MOST_OPENED : undefined)) card.open = open; }
  find("open").addEventListener("click", () => turn(true));
  find("close").addEventListener("click", () => turn(false));
  for (const box of [...boxes, ...selects]) box.addEventListener("input", select);
  order.addEventListener("input", sort);
  find("query").addEventListener("input", soon);
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = shownCards().filter((card) => !card.open);
    for (const card of closed) card.open = true;
  });
  addEventListener("afterprint", () => { for (const card of closed) card.open = false; });

  function follow() {
    const card = cards.find((one) => `#${one.id}` === location.hash);
    if (card) { card.hidden = false; card.open = true; card.querySelector("summary").focus(); }
  }
  addEventListener("hashchange", follow);
  addEventListener("load", follow);             // the browser takes the focus away when it goes to the address
  find("filters").hidden = false;
  if (order.selectedIndex) sort();
  else select();
})();
