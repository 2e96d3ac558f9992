"use strict";
// Draws the images of the report on demand. Every text of a caption goes in as text, never as markup.
(() => {
  const STATES = ["matched", "missed", "invented"];
  const PAGE = 50;
  const SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  const chunks = new Map();
  let data = null;
  let shown = PAGE;
  let rows = [];
  let opened = -1;

  // Details stand in the page, or in scripts beside it, which hand over their text when they have loaded.
  const waiting = new Map();
  window.spicegraphPart = (id, text) => waiting.get(id)(text);
  const load = (id) => new Promise((resolve, reject) => {
    waiting.set(id, resolve);
    const path = `${encodeURIComponent(at("parts").value)}/${id}.js`;
    document.head.append(make("script", { src: path, onerror: () => reject(new Error(`${path} can't be read`)) }));
  });
  const unpack = async (id) => {
    const text = at(id)?.textContent ?? await load(id);
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };
  const chunkOf = (place) => {
    const number = Math.floor(place / data.chunk);
    if (!chunks.has(number)) chunks.set(number, unpack(`chunk${number}`));
    return chunks.get(number).then((chunk) => chunk[place % data.chunk], (error) => {
      chunks.delete(number);
      throw error;
    });
  };

  const make = (name, properties = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in node) node[key] = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const draw = (name, attributes = {}, ...children) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const number = (value) => (value === null ? "–" : value.toFixed(3));

  // An id that is a string, but looks like a number, stands in quotes.
  const labelOf = (key) => (key.startsWith('"') ? JSON.parse(key) : key);

  // The state of the page stands in the address, so that every view has a permalink.
  const state = () => new URLSearchParams(location.hash.slice(1));
  const isView = (parameters) => ["image", "kind", "q", "sort", "low", "high"].some((key) => parameters.has(key));
  const go = (changes, { replace = false } = {}) => {
    const parameters = isView(state()) ? state() : new URLSearchParams();
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === "") parameters.delete(key);
      else parameters.set(key, value);
    }
    if (!isView(parameters)) parameters.set("sort", at("order").value);
    const hash = `#${parameters}`;
    if (replace) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    return show();
  };
  const linkTo = (place) => {
    const parameters = isView(state()) ? state() : new URLSearchParams();
    parameters.set("image", data.images[place][0]);
    return `#${parameters}`;
  };

  const select = () => {
    const system = Number(at("system").value);
    const category = Number(at("category").value);
    const query = at("query").value.trim().toLocaleLowerCase();
    const kind = at("kind").value;
    const group = state().get("group");
    const [low, high] = ["low", "high"].map((id) => at(id).valueAsNumber);
    const fits = ([key, candidates]) => {
      const [, scores, errors] = candidates[system];
      if (category > 0 && scores[category] === null) return false;
      if (scores[category] < low || scores[category] > high) return false;
      if (kind !== "" && !errors.some(([k, g]) => k === Number(kind) && (group === null || g === Number(group)))) return false;
      return query === "" || labelOf(key).toLocaleLowerCase().includes(query)
        || candidates.some(([caption]) => caption.toLocaleLowerCase().includes(query));
    };
    const score = (place) => data.images[place][1][system][1][category] ?? -1;
    const gap = (place) => {
      const all = data.images[place][1].map((candidate) => candidate[1][category] ?? 0);
      return Math.max(...all) - Math.min(...all);
    };
    const orders = { worst: (a, b) => score(a) - score(b), best: (a, b) => score(b) - score(a), gap: (a, b) => gap(b) - gap(a), file: (a, b) => a - b };
    rows = data.images.map((_, place) => place).filter((place) => fits(data.images[place]));
    rows.sort((a, b) => orders[at("order").value](a, b) || a - b);
  };

  const list = (current) => {
    const system = Number(at("system").value);
    const category = Number(at("category").value);
    at("list").replaceChildren(...rows.slice(0, shown).map((place) => {
      const [key, candidates] = data.images[place];
      const [caption, scores] = candidates[system];
      const link = make("a", { href: linkTo(place) },
        make("span", { className: "score" }, number(scores[category])),
        make("span", { className: "id" }, labelOf(key)),
        make("span", { className: "text", dir: "auto" }, caption));
      if (place === current) link.setAttribute("aria-current", "true");
      return make("li", {}, link);
    }));
    at("more").hidden = rows.length <= shown;
    const kind = at("kind").value;
    const group = state().get("group");
    const words = kind !== "" && group !== null ? data.groups[system][Number(kind)]?.[Number(group)] : null;
    const about = kind === "" ? "" : `: ${data.kinds[Number(kind)][1].toLocaleLowerCase()}${words ? ` (${words.join(" / ")})` : ""}`;
    at("status").textContent = `${rows.length} of ${data.images.length} ${data.images.length === 1 ? "image" : "images"}${about}`;
  };

  // Marks: Python counts code points, so texts are cut by code points too.
  const marked = (text, spans) => {
    const letters = Array.from(text);
    const owner = new Array(letters.length).fill(null);
    for (const span of spans) for (let i = span[0]; i < span[1]; i += 1) if (owner[i]?.[2] !== "matched") owner[i] = span;
    const edges = new Set([0, letters.length, ...spans.flatMap(([start, end]) => [start, end])]);
    const cuts = [...edges].sort((a, b) => a - b);
    return cuts.slice(0, -1).map((start, i) => {
      const piece = letters.slice(start, cuts[i + 1]).join("");
      if (owner[start] === null) return document.createTextNode(piece);
      const [, , name, title = name] = owner[start];
      return make("mark", { className: name, "data-start": start, title }, piece);
    });
  };
  const spansOf = (tuples, caption) => tuples.flatMap(([mentions, name]) =>
    mentions.filter(([number]) => number === caption).flatMap(([, , spans]) => spans.map(([a, b]) => [a, b, name])));

  const point = (row, mentions, lines) => {
    for (const node of at("detail").querySelectorAll(".pointed")) node.classList.remove("pointed");
    row.classList.add("pointed");
    for (const [caption, , spans] of mentions) {
      for (const [start, end] of spans) {
        for (const node of lines[caption].querySelectorAll("mark")) {
          const place = Number(node.dataset.start);
          if (place >= start && place < end) node.classList.add("pointed");
        }
      }
    }
  };

  const tupleText = (strings) => `(${strings.join(", ")})`;
  const how = (slots) => {
    const synsets = slots.filter((synset) => synset !== 0);
    return synsets.length === 0 ? "same words" : `synonym, ${synsets.map((n) => `WordNet ${data.synsets[n]}`).join("; ")}`;
  };
  const reason = (kind, other, near, name) => {
    const parts = [data.kinds[kind][1].toLocaleLowerCase()];
    if (other) parts.push(`${name} ${tupleText(other)}`);
    if (near) parts.push(near);
    return parts.join("; ");
  };
  const table = (title, tuples, lines) => {
    const body = tuples.map(({ strings, mentions, name, why }) => {
      const rules = [...new Set(mentions.map(([, rule]) => rule))].join(", ");
      const row = make("tr", { tabIndex: 0 },
        make("td", {}, make("bdi", {}, tupleText(strings))),
        make("td", {}, make("span", { className: `state ${name}` }, name)),
        make("td", {}, why), make("td", { className: "rules" }, rules));
      const mark = () => point(row, mentions, lines);
      row.addEventListener("click", mark);
      row.addEventListener("focus", mark);
      return row;
    });
    const head = ["Tuple", "State", "How or why", "Rules"].map((text) => make("th", { scope: "col", className: text === "Rules" ? "rules" : "" }, text));
    return make("div", { className: "scroll" }, make("table", { className: "tuples" }, make("caption", {}, title),
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
  };

  const graph = ([width, height, boxes, lines], view) => {
    const hidden = { candidate: 1, references: 2 }[view] ?? -1;
    const svg = draw("svg", { width: width + 90, height: height + 50, viewBox: `-20 -20 ${width + 90} ${height + 50}`, role: "img", "aria-label": `scene graph: ${view}` });
    const visible = lines.map(([labels, points]) => [labels.filter(([, s]) => s !== hidden), points]).filter(([labels]) => labels.length);
    const texts = [];
    const taken = [];
    for (const [labels, points] of visible) {
      const name = STATES[Math.min(...labels.map(([, s]) => s))];
      const [x0, y0] = points[0];
      const [xn, yn] = points[points.length - 1];
      const beside = points.length === 2 && Math.abs(xn - x0) < 30;
      let path = `M${x0} ${y0}`;
      if (beside) path += `C${Math.max(x0, xn) + 40} ${y0 - 6} ${Math.max(x0, xn) + 40} ${yn + 6} ${xn} ${yn}`;
      else for (let i = 1; i < points.length; i += 1) {
        const [ax, ay] = points[i - 1];
        const [bx, by] = points[i];
        path += `C${(ax + bx) / 2} ${ay} ${(ax + bx) / 2} ${by} ${bx} ${by}`;
      }
      svg.append(draw("path", { class: name, d: path, "marker-end": `url(#tip-${name})` }));
      const middle = points.length > 2 ? points[Math.floor(points.length / 2)] : [(x0 + xn) / 2 + (beside ? 36 : 0), (y0 + yn) / 2];
      const half = labels.reduce((sum, [text]) => sum + text.length + 2, 0) * 4.1;
      let y = middle[1] + 4;
      while (taken.some(([u, v, w]) => Math.abs(y - v) < 18 && Math.abs(middle[0] - u) < half + w)) y += 4;
      taken.push([middle[0], y, half]);
      const parts = labels.flatMap(([text, s], i) => [...(i ? [", "] : []), draw("tspan", { class: STATES[s] }, text)]);
      texts.push(draw("text", { class: "relation", x: middle[0], y, "text-anchor": beside ? "start" : "middle" }, ...parts));
    }
    const tips = STATES.map((name) => draw("marker", { id: `tip-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" },
      draw("path", { class: name, d: "M0 0 10 5 0 10" })));
    svg.prepend(draw("defs", {}, ...tips));
    svg.append(...texts);
    for (const [name, box, x, y, w, h, attributes] of boxes) {
      if (box === hidden) continue;
      const group = draw("g", { class: STATES[box] }, draw("rect", { x, y, width: w, height: h, rx: 5 }),
        draw("text", { x: x + w / 2, y: y + 21, "text-anchor": "middle", "font-weight": "bold" }, name));
      attributes.filter(([, s]) => s !== hidden).forEach(([text, s], i) =>
        group.append(draw("text", { class: STATES[s], x: x + w / 2, y: y + 48 + 20 * i, "text-anchor": "middle" }, text)));
      svg.append(group);
    }
    return svg;
  };
  const graphs = (picture) => {
    const holder = make("div", { className: "graph", tabIndex: 0, role: "group", ariaLabel: "Scene graph" }, graph(picture, "overlay"));
    const choices = [["overlay", "Both"], ["candidate", "Caption"], ["references", "References"]].map(([view, text]) => {
      const button = make("button", { type: "button", ariaPressed: String(view === "overlay") }, text);
      button.addEventListener("click", () => {
        for (const other of choices) other.setAttribute("aria-pressed", String(other === button));
        holder.replaceChildren(graph(picture, view));
      });
      return button;
    });
    return [make("h4", {}, "Scene graphs, laid over each other"), make("p", { className: "bar" }, ...choices), holder];
  };

  // SPICE-G: every tuple's best partner by degrees, and what would raise the score most.
  const percent = (value) => `${Math.round(100 * value)} %`;
  const gradedTable = (title, own, others) => {
    const body = [...own].sort((a, b) => b[1] * (1 - b[2]) - a[1] * (1 - a[2])).map(([strings, share, support, partner, slots, denied]) => {
      const alike = slots.map((value, i) => (value === null ? null : `${strings[i]} ${percent(value)}`)).filter((text) => text !== null);
      const parts = partner === null ? ["nothing like it"] : [`${tupleText(others[partner][0])}: ${alike.join(", ")}`];
      if (denied !== null) parts.push(`the references say ${tupleText(others[denied][0])}`);
      return make("tr", {}, make("td", {}, make("bdi", {}, tupleText(strings))), make("td", { className: "number" }, percent(share)),
        make("td", { className: "number" }, percent(support)), make("td", {}, parts.join("; ")));
    });
    const head = ["Tuple", "Weight", "Supported", "Best partner, slot by slot"].map((text) => make("th", { scope: "col" }, text));
    return make("div", { className: "scroll" }, make("table", { className: "tuples graded" }, make("caption", {}, title),
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
  };
  const judged = (caption, words, threshold) => {
    const spans = [...words].sort((a, b) => a[3] - b[3]).flatMap(([, places, verdict, wrong, , instead]) => {
      const title = `${verdict}: wrong with probability ${percent(wrong)}${instead === null ? "" : `; references have ${instead}`}`;
      return places.map(([start, end]) => [start, end, verdict, title]);
    });
    const body = words.map(([word, , verdict, wrong, partner, instead]) => make("tr", {}, make("td", {}, make("bdi", {}, word)),
      make("td", {}, make("span", { className: `state ${verdict}` }, verdict)), make("td", { className: "number" }, percent(wrong)),
      make("td", {}, partner === null ? "nothing like it" : make("bdi", {}, partner)), make("td", {}, instead === null ? "–" : make("bdi", {}, instead))));
    const head = ["Word", "Verdict", "Probability of being wrong", "Most similar in the references", "References have instead"].map((text) => make("th", { scope: "col" }, text));
    return [
      make("p", { className: "said judged", dir: "auto" }, ...marked(caption, spans)),
      make("div", { className: "scroll" }, make("table", { className: "tuples graded verdicts" },
        make("caption", {}, `Which words are wrong: those above ${percent(threshold)} are flagged`),
        make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))),
    ];
  };
  const graded = (found, caption) => {
    if (!found) return [];
    const [score, mine, theirs, changes, order, words, threshold] = found;
    const acts = changes.map(([action, strings, by, after, gain]) => make("li", {},
      `${action} ${tupleText(strings)}${by === null ? "" : ` by ${tupleText(by)}`}: ${number(after)} (+${number(gain)})`));
    return [
      make("h4", {}, `SPICE-G ${number(score)}`),
      ...(order < 1 ? [make("p", { className: "note" }, `The order of the words leaves ${percent(order)} of it: they follow one another as words in captions do not.`)] : []),
      ...(acts.length ? [make("p", { className: "note" }, "What would raise it most:"), make("ol", { className: "changes" }, ...acts)] : []),
      ...judged(caption, words, threshold),
      gradedTable("The caption's tuples, those that cost most first", mine, theirs), gradedTable("The references' tuples, those that cost most first", theirs, mine),
    ];
  };

  const candidate = (place, system, [references, , theirs], [mine, partners, picture, grades]) => {
    const [caption, scores] = data.images[place][1][system];
    const own = mine.map(([, mentions, found]) => [mentions, found.length ? "matched" : "invented"]);
    const refs = theirs.map(([, mentions], i) => [mentions, partners[i][0].length ? "matched" : "missed"]);
    const line = make("p", { className: "said", dir: "auto" }, ...marked(caption, spansOf(own, 0)));
    const items = references.map((text, i) => make("li", { dir: "auto" }, ...marked(text, spansOf(refs, i))));
    const values = data.categories.map((name, i) => `${name === "All" ? "SPICE" : name} ${number(scores[i])}`).join(" · ");
    const ours = mine.map(([strings, mentions, found, slots, kind, other, near]) => ({
      strings, mentions, name: found.length ? "matched" : "invented",
      why: found.length ? `${how(slots)}: ${tupleText(theirs[found[0]][0])}` : reason(kind, other === null ? null : theirs[other][0], near, "references have"),
    }));
    const others = theirs.map(([strings, mentions], i) => {
      const [found, kind, other, near] = partners[i];
      return { strings, mentions, name: found.length ? "matched" : "missed",
        why: found.length ? `by ${found.map((j) => tupleText(mine[j][0])).join(" ")}` : reason(kind, other === null ? null : mine[other][0], near, "the caption has"),
        agreeing: new Set(mentions.map(([number]) => number)).size };
    }).sort((a, b) => b.agreeing - a.agreeing);
    others.forEach((row) => { row.why += ` · ${row.agreeing} of ${references.length} references`; });
    return [
      make("h4", {}, make("bdi", {}, data.systems[system])), line, make("p", { className: "note" }, values),
      make("h4", {}, "References"), make("ol", { className: "said" }, ...items),
      ...graphs(picture), make("h4", {}, "Tuples"), make("p", { className: "note" }, "Choose a tuple to see its words."),
      table("What the caption says", ours, [line]), table("What the references say", others, items),
      ...graded(grades, caption),
    ];
  };

  const open = async (place) => {
    const details = await chunkOf(place);
    const label = labelOf(data.images[place][0]);
    const system = Number(at("system").value);
    const heading = make("h3", { tabIndex: -1 }, `Image ${label}`);
    const step = (text, by) => {
      const next = rows[rows.indexOf(place) + by];
      const button = make("button", { type: "button", disabled: next === undefined }, text);
      button.addEventListener("click", () => go({ image: data.images[next][0] }));
      return button;
    };
    const others = data.systems.map((name, i) => {
      const button = make("button", { type: "button", ariaPressed: String(i === system) }, name);
      button.addEventListener("click", () => go({ system: String(i) }));
      return button;
    });
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => go({ image: null }));
    const parts = [heading, make("p", { className: "bar" }, step("← Previous", -1), step("Next →", 1), ...(others.length > 1 ? others : []), close)];
    if (details[1] !== null) parts.push(make("img", { src: details[1], alt: `Image ${label}`, loading: "lazy" }));
    at("detail").replaceChildren(...parts, ...candidate(place, system, details, details[3][system]));
    at("detail").hidden = false;
    opened = place;
    heading.focus({ preventScroll: true });
    at("detail").scrollIntoView({ block: "start" });
  };

  const show = async () => {
    const parameters = state();
    if (!isView(parameters)) return;
    at("query").value = parameters.get("q") ?? "";
    at("system").value = parameters.get("system") ?? "0";
    at("category").value = parameters.get("category") ?? "0";
    at("order").value = parameters.get("sort") ?? "worst";
    for (const id of ["low", "high"]) at(id).value = parameters.get(id) ?? "";
    const kind = data.kinds.findIndex(([key]) => key === parameters.get("kind"));
    at("kind").value = kind < 0 ? "" : String(kind);
    select();
    const wanted = parameters.get("image");
    const place = wanted === null ? -1 : data.images.findIndex(([key]) => key === wanted);
    list(place);
    if (place >= 0) return open(place).catch((error) => { at("status").textContent = `The image can't be shown: ${error.message}.`; });
    at("detail").hidden = true;
    const left = rows.indexOf(opened);
    opened = -1;
    if (left >= 0 && left < shown && !at("controls").contains(document.activeElement)) at("list").children[left].firstChild.focus();
    if (wanted !== null) at("status").textContent = `There is no image ${wanted} in this report.`;
    else if (parameters.has("kind") && !at("controls").contains(document.activeElement)) at("images").scrollIntoView();
  };

  const start = async () => {
    data = await unpack("index");
    const used = new Set(data.images.flatMap(([, candidates]) => candidates.flatMap(([, , errors]) => errors.map(([kind]) => kind))));
    data.kinds.forEach(([, title], i) => { if (used.has(i)) at("kind").append(make("option", { value: String(i) }, title)); });
    const controls = { system: "system", category: "category", order: "sort" };
    for (const [id, key] of Object.entries(controls)) at(id).addEventListener("change", () => { shown = PAGE; go({ [key]: at(id).value, ...(id === "system" ? { group: null } : {}) }); });
    at("kind").addEventListener("change", () => { shown = PAGE; go({ kind: at("kind").value === "" ? null : data.kinds[Number(at("kind").value)][0], group: null, image: null }); });
    for (const id of ["low", "high"]) at(id).addEventListener("input", () => { shown = PAGE; go({ [id]: at(id).value, image: null }, { replace: true }); });
    at("query").addEventListener("input", () => { shown = PAGE; go({ q: at("query").value, image: null }, { replace: true }); });
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    at("controls").addEventListener("reset", () => setTimeout(() => { shown = PAGE; go({ q: null, low: null, high: null, system: null, category: null, sort: null, kind: null, group: null, image: null }); }));
    at("more").addEventListener("click", () => { shown += PAGE; list(-1); });
    document.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (at("detail").hidden || event.target.closest("input, select, .graph") || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") go({ image: null });
      const current = data.images.findIndex(([key]) => key === state().get("image"));
      const next = step === undefined ? undefined : rows[rows.indexOf(current) + step];
      if (next !== undefined) go({ image: data.images[next][0] });
    });
    window.addEventListener("hashchange", () => { shown = PAGE; show(); });
    window.addEventListener("popstate", show);
    select();
    list(-1);
    await show();
    document.documentElement.dataset.ready = "true";
  };
  start().catch((error) => { at("status").textContent = `The images can't be shown: ${error.message}`; throw error; });
})();
