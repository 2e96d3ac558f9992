// Lists the images of the report, filters and sorts them, and opens one; its state stands in the address.
(() => {
  const { f1, image, make, number, unpack: unpackText } = spicegraphImage;
  const isNarrow = matchMedia("(max-width: 40rem)").matches;
  const PAGE = isNarrow ? 8 : 40;
  const FIELDS = { query: "q", word: "word", kind: "kind", system: "system", score: "score", order: "sort", low: "low", high: "high", least: "least", noted: "noted" };
  const STARTS = { system: "0", score: "All", order: "worst" };
  const at = (id) => document.getElementById(id);
  const chunks = new Map();
  let data = null;
  let shown = PAGE;
  let rows = [];
  let opened = -1;
  let origin = null;  // the link that opened an image: closing leads back to it

  // Details stand in the page, or in scripts beside it, which hand over their text when they have loaded.
  const waiting = new Map();
  window.spicegraphPart = (id, text) => waiting.get(id)(text);
  const load = (id) => new Promise((resolve, reject) => {
    waiting.set(id, resolve);
    const path = `${encodeURIComponent(at("parts").value)}/${id}.js`;
    document.head.append(make("script", { src: path, onerror: () => reject(new Error(`${path} can't be read`)) }));
  });
  const unpack = async (id) => unpackText(at(id)?.textContent ?? await load(id));
  const chunkOf = (place) => {
    const n = Math.floor(place / data.chunk);
    if (!chunks.has(n)) chunks.set(n, unpack(`chunk${n}`));
    return chunks.get(n).then((chunk) => chunk[place % data.chunk], (error) => {
      chunks.delete(n);
      throw error;
    });
  };

  // An id that is a string, but looks like a number, stands in quotes.
  const labelOf = (place) => { const key = data.ids[place]; return key.startsWith('"') ? JSON.parse(key) : key; };

  // The state of the page stands in the address, so that every view has a permalink.
  const state = () => new URLSearchParams(location.hash.slice(1));
  const isView = (parameters) => ["image", ...Object.values(FIELDS)].some((key) => parameters.has(key));
  const kept = () => (isView(state()) ? state() : new URLSearchParams());
  const go = (changes, { replace = false } = {}) => {
    const parameters = kept();
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
    const parameters = kept();
    parameters.set("image", data.ids[place]);
    return `#${parameters}`;
  };

  // Notes stay in this browser, under a name of this report's own; a browser may refuse to keep them.
  let notes = {};
  let store = null;
  const keep = () => {
    try { localStorage.setItem(store, JSON.stringify(notes)); } catch { at("status").textContent = "This browser does not keep notes: export them before you leave."; }
  };

  const scoreOf = (place, system, name) => (name.startsWith("=")
    ? data.values[system][data.metrics.indexOf(name.slice(1))][place] : f1(data, place, system, data.categories.indexOf(name)));
  const gapOf = (place, name) => {
    const all = data.systems.map((_, s) => scoreOf(place, s, name) ?? 0);
    return Math.max(...all) - Math.min(...all);
  };
  // The words that a filter means: all under a synset such as animal.n.01, or those that are or contain the word.
  const wordsOf = (typed) => {
    const [names, broader, senses] = data.senses;
    const wanted = names.indexOf(typed);
    if (wanted < 0) return (word) => word === typed || word.split(/[ /]/).includes(typed);
    const below = (place) => { for (let i = place; i >= 0; i = broader[i]) if (i === wanted) return true; return false; };
    return (word) => word in senses && below(senses[word]);
  };
  const chosenGroups = (system, kind, group, typed) => {
    const fits = typed === "" ? null : wordsOf(typed);
    return data.groups[system].map((groups, k) => (kind !== "" && k !== Number(kind) ? null
      : groups.map((words, g) => (group === null || g === Number(group)) && (fits === null || words.some(fits)))));
  };

  const select = () => {
    const system = Number(at("system").value);
    const name = at("score").value;
    const query = at("query").value.trim().toLocaleLowerCase();
    const typed = at("word").value.trim().toLocaleLowerCase();
    const kind = at("kind").value;
    const group = state().get("group");
    const [low, high, least] = ["low", "high", "least"].map((id) => at(id)?.valueAsNumber ?? NaN);
    const groups = kind !== "" || typed !== "" ? chosenGroups(system, kind, group, typed) : null;
    const noted = at("noted").value;
    const tagged = noted.startsWith("tag:") ? noted.slice(4) : null;
    const fits = (place) => {
      const score = scoreOf(place, system, name);
      if (name !== "All" && score === null) return false;
      if (score < low || score > high) return false;
      if (gapOf(place, name) < least) return false;
      if (groups) {
        const own = data.errors[system][place];
        let found = false;
        for (let i = 0; i < own.length && !found; i += 2) found = groups[own[i]]?.[own[i + 1]] ?? false;
        if (!found) return false;
      }
      if (noted !== "" && !(tagged === null ? data.ids[place] in notes : notes[data.ids[place]]?.tags.includes(tagged))) return false;
      return query === "" || labelOf(place).toLocaleLowerCase().includes(query)
        || data.captions.some((captions) => captions[place].toLocaleLowerCase().includes(query));
    };
    const better = data.lower.includes(name.slice(1)) && name.startsWith("=") ? -1 : 1;
    const value = (place) => better * (scoreOf(place, system, name) ?? -1);
    const lead = (place) => better * ((scoreOf(place, 1, name) ?? 0) - (scoreOf(place, 0, name) ?? 0));
    const orders = { worst: value, best: (place) => -value(place), gap: (place) => -gapOf(place, name), lead: (place) => -lead(place), lag: lead, file: () => 0 };
    rows = data.ids.map((_, place) => place).filter(fits);
    const keys = new Map(rows.map((place) => [place, orders[at("order").value](place)]));
    rows.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
  };

  // The words of a row's errors that a filter by word means, so that one sees why a row is there.
  const matchingWords = (place, system) => {
    const typed = at("word").value.trim().toLocaleLowerCase();
    if (typed === "") return [];
    const fits = wordsOf(typed);
    const kind = at("kind").value;
    const own = data.errors[system][place];
    const words = own.flatMap((k, i) => (i % 2 || (kind !== "" && k !== Number(kind)) ? [] : data.groups[system][k][own[i + 1]]));
    return [...new Set(words.filter(fits))];
  };
  const list = (current) => {
    const name = at("score").value;
    const system = Number(at("system").value);
    at("list").replaceChildren(...rows.slice(0, shown).map((place) => {
      const source = data.sources?.[place];
      const link = make("a", { href: linkTo(place) },
        ...(source ? [make("img", { src: source, alt: "", loading: "lazy" })] : []), make("span", { className: "id" }, labelOf(place)),
        ...data.systems.map((label, s) => make("span", { className: `line s${s % 7}${s === system && data.systems.length > 1 ? " chosen" : ""}` },
          make("span", { className: "score" }, number(scoreOf(place, s, name))), make("span", { className: "text", dir: "auto" },
            ...(data.systems.length > 1 ? [make("b", { className: "name" }, make("bdi", {}, label)), " "] : []), make("bdi", {}, data.captions[s][place])))),
        ...matchingWords(place, system).map((word) => make("span", { className: "badge" }, word)),
        ...(notes[data.ids[place]]?.tags ?? []).map((tag) => make("span", { className: "badge" }, tag)));
      if (place === current) link.setAttribute("aria-current", "true");
      return make("li", {}, link);
    }));
    at("list").classList.toggle("pictured", Boolean(data.sources));
    at("more-rows").hidden = rows.length <= shown;
    const kind = at("kind").value;
    const group = state().get("group");
    const words = kind !== "" && group !== null ? data.groups[system][Number(kind)]?.[Number(group)] : null;
    const about = kind === "" ? "" : `: ${data.kinds[Number(kind)][1].toLocaleLowerCase()}${words ? ` (${words.join(" / ")})` : ""}`;
    at("status").textContent = `${rows.length} of ${data.ids.length} ${data.ids.length === 1 ? "image" : "images"}${about}`;
  };

  const notebook = (place) => {
    const key = data.ids[place];
    const own = notes[key] ?? { tags: [], note: "" };
    const tags = make("input", { value: own.tags.join(", "), placeholder: "wrong reference, to check" });
    const note = make("textarea", { value: own.note, rows: 2 });
    const save = () => {
      const found = { tags: [...new Set(tags.value.split(",").map((tag) => tag.trim()).filter(Boolean))], note: note.value.trim() };
      if (found.tags.length || found.note) notes[key] = found;
      else delete notes[key];
      keep();
      tagOptions();
    };
    for (const field of [tags, note]) field.addEventListener("change", save);
    return make("div", { className: "fields notebook screen" }, make("label", {}, "Tags", tags), make("label", {}, "Note, kept in this browser", note));
  };
  const tagOptions = () => {
    const chosen = at("noted").value;
    const tags = [...new Set(Object.values(notes).flatMap((own) => own.tags))].sort();
    at("noted").replaceChildren(make("option", { value: "" }, "All"), make("option", { value: "any" }, "With a note or tag"), ...tags.map((tag) => make("option", { value: `tag:${tag}` }, tag)));
    at("noted").value = chosen;
  };

  const open = async (place) => {
    const details = await chunkOf(place);
    const heading = make("h3", { tabIndex: -1 }, `Image ${labelOf(place)}`);
    const step = (text, by) => {
      const next = rows[rows.indexOf(place) + by];
      const button = make("button", { type: "button", disabled: next === undefined }, text);
      button.addEventListener("click", () => go({ image: data.ids[next] }));
      return button;
    };
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => go({ image: null }));
    at("detail").replaceChildren(heading, make("div", { className: "bar" }, step("← Previous", -1), step("Next →", 1), close), image(data, place, details, labelOf(place)), notebook(place));
    at("detail").hidden = false;
    opened = place;
    if (origin?.place === null) origin.place = place;
    heading.focus({ preventScroll: true });
    at("detail").scrollIntoView({ block: "start" });
  };

  const show = async () => {
    const parameters = state();
    if (!isView(parameters)) return;
    for (const [id, key] of Object.entries(FIELDS)) if (at(id) && id !== "kind") at(id).value = parameters.get(key) ?? STARTS[id] ?? "";
    const kind = data.kinds.findIndex(([key]) => key === parameters.get("kind"));
    at("kind").value = kind < 0 ? "" : String(kind);
    select();
    const wanted = parameters.get("image");
    const place = wanted === null ? -1 : data.ids.indexOf(wanted);
    list(place);
    if (place >= 0) return open(place).catch((error) => { at("status").textContent = `The image can't be shown: ${error.message}.`; });
    at("detail").hidden = true;
    const left = rows.indexOf(opened);
    const back = origin?.place === opened && origin.link.isConnected ? origin.link
      : left >= 0 && left < shown ? at("list").children[left].firstChild : null;
    [opened, origin] = [-1, null];
    if (back !== null && !at("controls").contains(document.activeElement)) {
      back.focus({ preventScroll: true });
      back.scrollIntoView({ block: "center" });
    }
    if (wanted !== null) at("status").textContent = `There is no image ${wanted} in this report.`;
    else if (parameters.has("kind") && !at("controls").contains(document.activeElement)) at("images").scrollIntoView();
  };

  // What is listed, for other programs: no cell of a spreadsheet is taken for a formula.
  const table = () => rows.map((place) => {
    const row = { image: labelOf(place) };
    data.systems.forEach((system, s) => {
      row[`${system}: caption`] = data.captions[s][place];
      data.categories.forEach((name) => { row[`${system}: ${name === "All" ? "SPICE" : `SPICE_${name}`}`] = scoreOf(place, s, name); });
      data.metrics.forEach((name) => { row[`${system}: ${name}`] = scoreOf(place, s, `=${name}`); });
      const kinds = data.errors[s][place].filter((_, i) => i % 2 === 0).map((k) => data.kinds[k][0]);
      row[`${system}: errors`] = [...new Set(kinds)].join(" ");
    });
    const own = notes[data.ids[place]];
    return { ...row, tags: own?.tags.join(", ") ?? "", note: own?.note ?? "" };
  });
  const cell = (value) => {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    return `"${value.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  };
  const csv = (found) => [Object.keys(found[0] ?? { image: "" }), ...found.map(Object.values)].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  const give = (name, kind, text) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    URL.revokeObjectURL(link.href);
  };

  const start = async () => {
    if (isNarrow) for (const side of document.querySelectorAll(".side")) side.open = false;
    data = await unpack("index");
    store = `spicegraph:${at("index").textContent.slice(-24)}`;
    try { notes = JSON.parse(localStorage.getItem(store) ?? "{}"); } catch { notes = {}; }
    tagOptions();
    const used = new Set(data.errors.flatMap((images) => images.flatMap((own) => own.filter((_, i) => i % 2 === 0))));
    data.kinds.forEach(([, title], i) => { if (used.has(i)) at("kind").append(make("option", { value: String(i) }, title)); });
    const [names, broader, senses] = data.senses;
    const below = new Map();
    for (const place of Object.values(senses)) for (let i = place; i >= 0; i = broader[i]) below.set(i, (below.get(i) ?? 0) + 1);
    at("words").append(...[...below].sort((a, b) => b[1] - a[1]).slice(0, 300).map(([i]) => make("option", { value: names[i] })));
    for (const id of ["system", "score", "order", "noted"]) at(id).addEventListener("change", () => { shown = PAGE; go({ [FIELDS[id]]: at(id).value, ...(id === "system" ? { group: null } : {}) }); });
    at("kind").addEventListener("change", () => { shown = PAGE; go({ kind: at("kind").value === "" ? null : data.kinds[Number(at("kind").value)][0], group: null, image: null }); });
    for (const id of ["query", "word", "low", "high", "least"]) at(id)?.addEventListener("input", () => { shown = PAGE; go({ [FIELDS[id]]: at(id).value, image: null }, { replace: true }); });
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    at("controls").addEventListener("reset", () => setTimeout(() => { shown = PAGE; go(Object.fromEntries([...Object.values(FIELDS), "group", "image"].map((key) => [key, null]))); }));
    at("more-rows").addEventListener("click", () => { shown += PAGE; list(-1); });
    at("exports").hidden = false;
    at("csv").addEventListener("click", () => give("images.csv", "text/csv", csv(table())));
    at("json").addEventListener("click", () => give("images.json", "application/json", JSON.stringify(table(), null, 1)));
    at("notes").addEventListener("click", () => give("notes.json", "application/json", JSON.stringify(notes, null, 1)));
    at("link").addEventListener("click", async () => {
      if (!isView(state())) await go({ sort: at("order").value });
      try { await navigator.clipboard.writeText(location.href); at("status").textContent = "The link to this list is copied."; } catch { at("status").textContent = location.href; }
    });
    document.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (at("detail").hidden || event.target.closest("input, select, textarea, .graph, .scroll") || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") go({ image: null });
      const next = step === undefined ? undefined : rows[rows.indexOf(data.ids.indexOf(state().get("image"))) + step];
      if (next !== undefined) go({ image: data.ids[next] });
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (link && new URLSearchParams(link.hash.slice(1)).has("image")) origin = { link, place: null };
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
