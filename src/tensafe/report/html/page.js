"use strict";
(() => {
  const AT_ONCE = 120;          // lines made at a time
  const MOST_PRINTED = 1000;
  const MOST_NAMES = 60;        // in the dock
  const MOST_OPEN = 24;         // a storage of more tensors starts closed
  const ROW_CHARACTERS = 160;
  const TAIL = 30;              // characters at the end of a name that always show
  const USED = 1, MIXED = 3;
  const SEGMENT = ["dead", "used", "many", "used mixed"];
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const KINDS = new Set(["parameter", "gradient", "optimizer state", "buffer", "tensor", "array"]);

  const find = (id) => document.getElementById(id);
  const make = (name, className = "", text = "") => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== "") node.textContent = text;
    return node;
  };
  const words = (number) => BigInt(number).toLocaleString("en-US");
  const counted = (number, one) => `${words(number)} ${one}${number === 1 ? "" : "s"}`;
  const size = (nbytes) => {
    let value = Number(nbytes), unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    if (unit === 0) return `${value} B`;
    if (value >= 1024) return "over 1,024 EiB";
    if (Math.round(value) >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    return `${value >= 99.95 ? Math.round(value).toLocaleString("en-US") : (Math.round(value * 10) / 10).toFixed(1)} ${UNITS[unit]}`;
  };
  const shorten = (name) => {
    if (name.length <= ROW_CHARACTERS) return name;
    const letters = Array.from(name);    // by characters, as a pair of surrogates is one
    return letters.length <= ROW_CHARACTERS ? name
      : `${letters.slice(0, ROW_CHARACTERS / 2).join("")}…${letters.slice(-ROW_CHARACTERS / 2).join("")}`;
  };
  const shapeOf = (sizes) => sizes.length ? sizes.join(" × ") : "scalar";

  const read = () => {
    const stored = JSON.parse(find("data").textContent).storages;
    return stored.map((storage, number) => {
      const tensors = storage.tensors.map(
        ([names, shape, strides, dtype, kind, notes, start, stop, nbytes, runs, fine]) =>
          ({ names, shape, strides, dtype, kind, notes, start, stop, nbytes, runs, fine, text: names.join("\n").toLowerCase() }));
      return { ...storage, number, tensors, text: storage.label.toLowerCase() };
    });
  };

  const storages = read();
  const widest = Math.max(1, ...chunked(storages.map((storage) => Number(storage.nbytes))));
  const tensorCount = storages.reduce((sum, storage) => sum + storage.tensors.length, 0);
  const turned = new Map();     // storages that were opened or closed by hand
  let lines = [], made = 0, current = 0, chosen = null, found = 0, foundIn = 0;
  const rows = find("rows"), dock = find("dock"), grid = find("grid");

  function chunked(numbers) {   // Math.max takes some ten thousand arguments at most
    const best = [];
    for (let i = 0; i < numbers.length; i += 1000) best.push(Math.max(...numbers.slice(i, i + 1000)));
    return best;
  }

  /* ---- which lines ---- */
  const NAMES = new Intl.Collator("en", { numeric: true });
  const key = (storage) => storage.tensors.length ? storage.tensors[0].names[0] : storage.label;
  const ORDER = {
    size: (a, b) => Number(b.nbytes) - Number(a.nbytes) || a.number - b.number,
    dead: (a, b) => Number(b.dead) - Number(a.dead) || a.number - b.number,
    name: (a, b) => NAMES.compare(key(a), key(b)) || a.number - b.number,
  };
  const isOpen = (storage, filtered) => turned.get(storage.number)
    ?? (filtered || storage.tensors.length <= MOST_OPEN || storages.length <= 3);

  function select() {
    const query = find("query").value.trim().toLowerCase();
    const shares = find("shares").checked, dead = find("dead").checked, tied = find("tied").checked;
    lines = []; found = 0; foundIn = 0;
    for (const storage of [...storages].sort(ORDER[find("order").value])) {
      if (shares && !Number(storage.shared)) continue;
      if (dead && !Number(storage.dead)) continue;
      let tensors = storage.tensors;
      if (tied) tensors = tensors.filter((tensor) => tensor.names.length > 1);
      if (query && !storage.text.includes(query)) tensors = tensors.filter((tensor) => tensor.text.includes(query));
      if (!tensors.length && (tied || (query && !storage.text.includes(query)))) continue;
      found += tensors.length; foundIn += 1;
      add(storage, tensors, Boolean(query || tied));
    }
    find("count").textContent = found === tensorCount && foundIn === storages.length
      ? `${counted(tensorCount, "tensor")} in ${counted(storages.length, "storage")}`
      : `${words(found)} of ${counted(tensorCount, "tensor")}, in ${counted(foundIn, "storage")}`;
  }

  function add(storage, tensors, filtered) {
    if (storage.tensors.length === 1 && storage.segments.every(([, , kind]) => kind === USED)) {
      lines.push({ storage, tensor: storage.tensors[0], alone: true, level: 1 });
      return;
    }
    const open = tensors.length > 0 && isOpen(storage, filtered);
    lines.push({ storage, tensor: null, open, level: 1, closable: tensors.length > 0 });
    if (open) for (const tensor of tensors) lines.push({ storage, tensor, level: 2 });
  }

  /* ---- drawing ---- */
  const own = () => find("scale").value === "own";
  const tint = (kind) => (KINDS.has(kind) ? kind : "tensor").split(" ")[0];

  function strip(bar, start, stop, whole, className) {
    const piece = make("i", className);
    const from = Math.min(100, 100 * Number(start) / whole);
    piece.style.left = `${from}%`;
    piece.style.width = `${Math.min(100 - from, 100 * (Number(stop) - Number(start)) / whole)}%`;
    bar.append(piece);
  }

  function bar(line) {
    const { storage, tensor } = line, whole = Number(storage.nbytes) || 1;
    const box = make("div", storage.device === "meta" ? "bar unreal" : "bar");
    box.style.width = own() ? "100%" : `${100 * Number(storage.nbytes) / widest}%`;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", spoken(line));
    if (tensor && !line.alone) {
      for (let i = 0; i < tensor.runs.length; i += 2) {
        strip(box, tensor.runs[i], tensor.runs[i + 1], whole, tint(tensor.kind) + (tensor.fine ? " mixed" : ""));
      }
      return box;
    }
    for (const [start, stop, kind] of storage.segments) {
      strip(box, start, stop, whole, line.alone ? tint(tensor.kind) : SEGMENT[kind]);
    }
    return box;
  }

  function spoken({ storage, tensor, alone }) {
    if (tensor && !alone) return `${range(tensor)} of ${words(storage.nbytes)}`;
    return `${size(storage.nbytes)}, ${Number(storage.dead) ? `${size(storage.dead)} dead` : "none dead"}`
      + (Number(storage.shared) ? `, ${size(storage.shared)} shared` : "");
  }
  const range = (tensor) => Number(tensor.nbytes) ? `bytes ${words(tensor.start)} to ${words(tensor.stop)}` : "no bytes";

  function named(name) {        // cut in the middle by the style sheet too, where the line has no room
    const short = shorten(name), node = make("bdi");
    const tail = /^[ -~…]*$/.test(short) && short.length > TAIL + 6 ? short.slice(-TAIL) : "";
    node.append(make("span", "", tail ? short.slice(0, -TAIL) : short));
    if (tail) node.append(make("span", "tail", tail));
    node.title = name;
    return node;
  }

  const placed = ({ device, notes }) =>
    device === "cpu" || notes.some((note) => note.startsWith(device)) ? [] : [device];

  function nameCell(line) {
    const cell = make("div", "cell name"), { storage, tensor, alone } = line;
    const name = tensor ? tensor.names[0] : storage.label;
    if (!tensor && line.closable) {
      const twist = make("span", "twist", line.open ? "▾" : "▸");
      twist.setAttribute("aria-hidden", "true");
      cell.append(twist);
    }
    cell.append(named(name));
    const more = tensor ? tensor.names.length - 1 : storage.tensors.length;
    const about = tensor ? [] : [counted(more, "tensor")];
    if (tensor && more) about.push(`+ ${counted(more, "name")}`);
    if (!tensor || alone) about.push(...placed(storage), ...storage.notes);
    if (about.length) cell.append(make("small", "", about.join(" · ")));
    return cell;
  }

  function row(line, index) {
    const { storage, tensor, alone } = line;
    const node = make("div", alone ? "line alone" : "line");
    node.setAttribute("role", "row");
    node.setAttribute("aria-level", line.level);
    node.setAttribute("aria-rowindex", index + 2);
    if (line.closable) node.setAttribute("aria-expanded", line.open);
    node.tabIndex = index === current ? 0 : -1;
    node.dataset.index = index;
    const draw = make("div", "cell draw");
    draw.append(bar(line));
    const dead = (!tensor || alone) && Number(storage.dead) ? `${storage.exact ? "" : "≥ "}${size(storage.dead)}` : "";
    const cells = [nameCell(line), draw,
      make("div", "cell shape", tensor ? `${shapeOf(tensor.shape)} ${tensor.dtype}` : ""),
      make("div", "cell size", size(tensor ? tensor.nbytes : storage.nbytes)), make("div", "cell dead", dead)];
    for (const cell of cells) { cell.setAttribute("role", "gridcell"); node.append(cell); }
    return node;
  }

  function extend(upTo) {
    const end = Math.min(lines.length, upTo), part = document.createDocumentFragment();
    for (; made < end; made += 1) part.append(row(lines[made], made));
    rows.append(part);
    const left = lines.length - made;
    find("more").hidden = !left;
    find("more").textContent = `Show more (${words(left)} lines left)`;
  }

  function draw() {
    select();
    current = 0; made = 0; chosen = null;
    rows.replaceChildren();
    grid.setAttribute("aria-rowcount", lines.length + 1);
    if (!lines.length) rows.append(make("p", "nothing", storages.length ? "No storage or tensor fits." : "There is no storage."));
    extend(AT_ONCE);
    axis();
    show(null);
  }

  function axis() {
    const head = grid.querySelector(".heads .draw");
    head.replaceChildren();
    find("scale-words").textContent = own() ? "Each storage is drawn at full width; compare within a storage only."
      : `Drawn to scale: full width is ${size(widest)}, the same for all; nothing is drawn narrower than 3 pixels.`;
    if (own()) return;
    const step = 2 ** Math.ceil(Math.log2(widest / (head.clientWidth / 110 || 4)));
    for (let at = 0; at < widest && head.childElementCount < 12; at += Math.max(1, step)) {
      const tick = make("span", "tick", at ? size(at).replace(".0 ", " ") : "0");
      if ((1 - at / widest) * head.clientWidth < 56) tick.textContent = "";  // no room for the words
      tick.style.left = `${100 * at / widest}%`;
      head.append(tick);
    }
  }

  /* ---- the dock ---- */
  function fact(list, name, value, className = "") {
    if (value === "") return;
    const pair = make("div", className);
    pair.append(make("dt", "", name), make("dd", "", value));
    list.append(pair);
  }

  function show(line) {
    dock.hidden = !line;
    if (!line) { dock.replaceChildren(); return; }
    const { storage, tensor } = line, inside = make("div", "inside"), names = make("ul"), list = make("dl");
    const listed = tensor ? tensor.names : [storage.label];
    for (const name of listed.slice(0, MOST_NAMES)) { const item = make("li"); item.append(make("bdi", "", name)); names.append(item); }
    if (listed.length > MOST_NAMES) names.append(make("li", "", `and ${words(listed.length - MOST_NAMES)} more`));
    if (tensor) {
      fact(list, "Shape", shapeOf(tensor.shape));
      fact(list, "Stride", tensor.strides.length ? `(${tensor.strides.join(", ")})` : "()");
      fact(list, "Dtype", tensor.dtype);
      fact(list, "Kind", [tensor.kind, ...tensor.notes].join(", "));
      fact(list, "Byte range", Number(tensor.nbytes) ? `${words(tensor.start)} to ${words(tensor.stop)}` : "none");
      fact(list, "Bytes", `${words(tensor.nbytes)} (${size(tensor.nbytes)})`);
    }
    const state = [`${words(storage.nbytes)} bytes`];
    if (Number(storage.dead)) state.push(`${storage.exact ? "" : "at least "}${words(storage.dead)} dead`);
    if (Number(storage.shared)) state.push(`${storage.exact ? "" : "at most "}${words(storage.shared)} shared`);
    fact(list, "Storage", [...(tensor ? [storage.label] : []), storage.device, state.join(", "), ...storage.notes].join(" · "), "wide");
    const { sure, unsure } = tensor ? neighbours(line) : { sure: [], unsure: [] };
    fact(list, "Shares bytes with", some(sure), "wide");
    fact(list, "May share bytes with", some(unsure), "wide");
    inside.append(names, list);
    dock.replaceChildren(inside);
  }

  function neighbours({ storage, tensor }) {      // those that surely share bytes, and those that may
    const sure = [], unsure = [];
    if (!Number(storage.shared)) return { sure, unsure };
    const at = storage.tensors.indexOf(tensor);
    for (const [index, other] of storage.tensors.entries()) {
      if (other === tensor || !meet(tensor, other)) continue;
      if (!tensor.fine && !other.fine) sure.push(other);
      else if (!storage.pairs) unsure.push(other);
      else {
        const pair = storage.pairs.find(([i, j]) => i === Math.min(at, index) && j === Math.max(at, index));
        if (pair) (pair[2] ? sure : unsure).push(other);
      }
    }
    return { sure, unsure };
  }

  function some(tensors) {
    const listed = tensors.slice(0, 8).map((other) => shorten(other.names[0])).join(", ");
    return tensors.length > 8 ? `${listed} and ${words(tensors.length - 8)} more` : listed;
  }

  function meet(a, b) {         // by the runs that are drawn
    for (let i = 0, j = 0; i < a.runs.length && j < b.runs.length;) {
      if (Number(a.runs[i]) < Number(b.runs[j + 1]) && Number(b.runs[j]) < Number(a.runs[i + 1])) return true;
      if (Number(a.runs[i + 1]) < Number(b.runs[j + 1])) i += 2; else j += 2;
    }
    return false;
  }

  /* ---- hands ---- */
  const lineOf = (node) => node && node.closest ? node.closest("#rows .line") : null;

  function focus(index) {
    if (!lines.length) return;
    const to = Math.max(0, Math.min(lines.length - 1, index));
    if (to >= made) extend(to + AT_ONCE);
    rows.children[current].tabIndex = -1;
    current = to;
    rows.children[to].tabIndex = 0;
    rows.children[to].focus();
  }

  function choose(index) {
    if (chosen !== null && rows.children[chosen]) {
      rows.children[chosen].classList.remove("chosen");
      rows.children[chosen].removeAttribute("aria-selected");
      rows.children[chosen].removeAttribute("aria-describedby");
    }
    chosen = index;
    if (index === null) { show(null); return; }
    rows.children[index].classList.add("chosen");
    rows.children[index].setAttribute("aria-selected", "true");
    show(lines[index]);
    rows.children[index].setAttribute("aria-describedby", "dock");
  }

  function turn(index, open) {
    const line = lines[index];
    if (!line || !line.closable || line.open === open) return false;
    turned.set(line.storage.number, open);
    draw();
    const at = lines.findIndex((other) => other.storage === line.storage && !other.tensor);
    focus(at);
    return true;
  }

  const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = lines[current];
    if (event.key in STEPS) focus(current + STEPS[event.key]);
    else if (event.key === "ArrowRight") turn(current, true) || (line.open && focus(current + 1));
    else if (event.key === "ArrowLeft") turn(current, false) || (line.level === 2 && focus(parentOf(current)));
    else if (event.key === "Enter" || event.key === " ") { if (line.closable) turn(current, !line.open); }
    else if (event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
  }
  const parentOf = (index) => { let at = index; while (lines[at].level === 2) at -= 1; return at; };

  rows.addEventListener("keydown", press);
  rows.addEventListener("focusin", (event) => {
    const node = lineOf(event.target);
    if (!node) return;
    current = Number(node.dataset.index);
    choose(current);
  });
  rows.addEventListener("mouseover", (event) => { const node = lineOf(event.target); if (node) show(lines[node.dataset.index]); });
  grid.addEventListener("mouseleave", () => show(chosen === null ? null : lines[chosen]));
  rows.addEventListener("click", (event) => {
    const node = lineOf(event.target);
    if (!node) return;
    const index = Number(node.dataset.index);
    if (event.target.classList.contains("twist")) turn(index, !lines[index].open);
    else focus(index);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); find("query").focus(); }
  });
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["query", "shares", "dead", "tied", "order", "scale"]) find(id).addEventListener("input", draw);
  find("more").addEventListener("click", () => extend(made + AT_ONCE));
  new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) extend(made + AT_ONCE); },
    { rootMargin: "900px" }).observe(find("more"));
  const folded = new Set();     // closed by the reader, and open on paper
  addEventListener("beforeprint", () => {
    extend(MOST_PRINTED);
    for (const fold of document.querySelectorAll("details:not([open])")) { folded.add(fold); fold.open = true; }
  });
  addEventListener("afterprint", () => {
    for (const fold of folded) fold.open = false;
    folded.clear();
  });
  addEventListener("resize", axis);

  find("plain").remove();
  find("drawing").hidden = false;
  draw();
})();
