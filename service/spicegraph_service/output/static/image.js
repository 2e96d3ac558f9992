"use strict";
// Draws one image: its captions, tuples, graphs and how its scores come about. Every text of a caption goes in as text,
// never as markup. What belongs together has keys in data-t: "r3" is a tuple of the references, "0c4" one of system 0.
const spicegraphImage = (() => {
  const STATES = ["matched", "missed", "invented", "near"];
  const LABELS = { matched: "right", near: "near miss", invented: "invented", missed: "missing" };
  const KEY = [["matched", "right"], ["near", "almost right"], ["invented", "wrong: no reference has it"], ["missed", "missing: only the references say it"]];
  const RANK = { matched: 0, near: 1, invented: 2, missed: 2 };
  const SVG = "http://www.w3.org/2000/svg";
  const LONGEST = 40;

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
  // Packed data: five characters of base 85 are four bytes, of the last ones there may be fewer; a point stands for "<".
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;.=>?@^_`{|}~";
  const VALUES = new Uint8Array(128);
  for (let i = 0; i < DIGITS.length; i += 1) VALUES[DIGITS.charCodeAt(i)] = i;
  const bytesOf = (text) => {
    const bytes = new Uint8Array(Math.floor((text.length * 4) / 5));
    for (let from = 0, to = 0; from < text.length; from += 5, to += 4) {
      let value = 0;
      for (let i = from; i < from + 5; i += 1) value = value * 85 + (i < text.length ? VALUES[text.charCodeAt(i)] : 84);
      for (let i = 0; i < 4 && to + i < bytes.length; i += 1) bytes[to + i] = value / 2 ** (24 - 8 * i);
    }
    return bytes;
  };
  const unpack = (text) => {
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };
  // As the rest of the page writes numbers: what lies between two of them goes to the even one.
  const number = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value * 16) % 2 !== 1) return value.toFixed(3);
    const below = Math.floor(value * 1000);
    return ((below + (below % 2 ? 1 : 0)) / 1000).toFixed(3);
  };
  const percent = (value) => `${Math.round(100 * value)} %`;
  const cut = (text) => (text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`);
  const tupleText = (strings) => `(${strings.join(", ")})`;
  const scrolled = (table, label) => make("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: label }, table);
  const headings = (names) => make("thead", {}, make("tr", {}, ...names.map((text) => make("th", { scope: "col", className: text === "Read by rule" ? "rules" : "" }, text))));

  // Precision, recall and F1 as the scorer computes them, from the same counts.
  const measures = ([matched, said, there]) => {
    const p = said ? matched / said : 0;
    const r = there ? matched / there : 0;
    return [p, r, p + r ? (2 * p * r) / (p + r) : 0];
  };
  const countsOf = (data, place, system, category) => {
    const own = data.counts[system][place];
    return [own[2 * category], own[2 * category + 1], data.reference[place][category]];
  };
  const f1 = (data, place, system, category) => {
    const counts = countsOf(data, place, system, category);
    return category > 0 && counts[2] === 0 ? null : measures(counts)[2];
  };

  // Marks: Python counts code points, so texts are cut by code points too. A piece has the best state of its tuples.
  const marked = (text, spans) => {
    const letters = Array.from(text);
    const edges = new Set([0, letters.length, ...spans.flatMap(([start, end]) => [start, end])]);
    const cuts = [...edges].sort((a, b) => a - b);
    let first = 0;
    return cuts.slice(0, -1).map((start, i) => {
      const piece = letters.slice(start, cuts[i + 1]).join("");
      const own = spans.filter((span) => span[0] <= start && span[1] > start);
      if (!own.length) return document.createTextNode(piece);
      own.sort((a, b) => (RANK[a[2]] ?? 3) - (RANK[b[2]] ?? 3));
      const [, , name, , title = name] = own[0];
      const keys = [...new Set(own.map((span) => span[3]))].join(" ");
      first += 1;
      return make("mark", { className: name, title, tabIndex: first === 1 ? 0 : -1, "data-t": keys }, piece);
    });
  };
  const spansOf = (tuples, caption) => tuples.flatMap(([mentions, name, key, title]) =>
    mentions.filter(([n]) => n === caption).flatMap(([, , ...ends]) => ends.flatMap((a, i) => (i % 2 ? [] : [[a, ends[i + 1], name, key, title]]))));

  const arithmetic = (data, place, system) => {
    const rows = [];
    const absent = [];
    data.categories.forEach((name, category) => {
      const [matched, said, there] = countsOf(data, place, system, category);
      if (category > 0 && !said && !there) { absent.push(name); return; }
      const undefined_ = category > 0 && !there;
      const [p, r, f] = measures([matched, said, there]);
      rows.push(make("tr", { "data-category": name }, make("th", { scope: "row" }, category ? name : "SPICE"),
        make("td", {}, said ? `${matched} of ${said} said ${matched === 1 ? "is" : "are"} right: ` : "none said: ", make("b", {}, undefined_ ? "P –" : `P ${number(p)}`)),
        make("td", {}, undefined_ ? "none in references: " : `${matched} of ${there} found: `, make("b", {}, undefined_ ? "R –" : `R ${number(r)}`)),
        make("td", {}, make("b", {}, undefined_ ? "F –" : `F ${number(f)}`))));
    });
    const parts = [scrolled(make("table", { className: "sums" }, make("tbody", {}, ...rows)), "How SPICE comes about")];
    if (absent.length) parts.push(make("p", { className: "note" }, `In neither: ${absent.join(", ")}.`));
    return parts;
  };
  const others = (data, place, system, workings) => {
    const told = new Map(workings.map(([index, ...values]) => {
      const [score, text] = data.workings[index];
      const written = values.map((value) => (value === null ? "–" : Number.isInteger(value) ? String(value) : number(value)));
      return [score, text.split("{}").map((part, i) => part + (written[i] ?? "")).join("")];
    }));
    if (!data.metrics.length) return [];
    const rows = data.metrics.flatMap((name, metric) => [
      make("dt", {}, name), make("dd", {}, make("b", { className: "number" }, number(data.values[system][metric][place])), told.has(name) ? make("span", { className: "dim" }, ` ${told.get(name)}`) : "")]);
    return [make("details", { className: "fold", open: data.systems.length === 1 }, make("summary", {}, data.metrics.length === 1 ? "1 more metric, with its calculation" : `${data.metrics.length} more metrics, with their calculation`), make("dl", { className: "facts metrics" }, ...rows))];
  };

  // What a kind of error is about: the first word of its key, such as "color" of "color_confused".
  const aspectOf = (data, kind) => (kind === null ? null : data.kinds[kind][0].split("_")[0]);
  const synset = (data, n) => data.synsets[n] ?? "";
  const how = (data, slots) => {
    const synsets = slots.filter((n) => n !== 0);
    return synsets.length === 0 ? "same words" : `synonym, WordNet ${synsets.map((n) => synset(data, n)).join("; ")}`;
  };
  const mergedText = (data, merged) => (merged?.length ? `merged as ${merged.map((n) => synset(data, n)).join("; ")}` : "");
  const reason = (data, kind, other, near, name) => {
    const parts = [data.kinds[kind][1].toLocaleLowerCase()];
    if (other) parts.push(`${name} ${tupleText(other)}`);
    if (near) parts.push(near);
    return parts.join("; ");
  };
  const table = (title, rows) => {
    const body = rows.map(({ strings, rules, name, label, why, key }, i) => make("tr", { tabIndex: i ? -1 : 0, "data-t": key },
      make("td", {}, make("bdi", {}, tupleText(strings))),
      make("td", {}, make("span", { className: `badge ${name}` }, label)), make("td", {}, why), make("td", { className: "rules" }, ...rules)));
    return scrolled(make("table", { className: "tuples" }, make("caption", {}, title), headings(["Tuple", "State", "How or why", "Read by rule"]), make("tbody", {}, ...body)), title);
  };
  // The parser's rules that read a tuple, each with what it does.
  const rulesOf = (data, mentions) => [...new Set(mentions.map(([, rule]) => data.rules[rule]).filter(Boolean))].flatMap(([name, about], i) => [
    ...(i ? [", "] : []), make("abbr", { title: about }, name)]);

  let drawings = 0;
  const graph = ([width, height, boxes, lines], strings, key, view, label) => {
    const hidden = { candidate: [1], references: [2, 3] }[view] ?? [];
    const drawing = (drawings += 1);
    const text = (state, tuple) => { const own = strings(state, tuple); return cut(own[own.length === 1 ? 0 : 1]); };
    const seen = ([state]) => !hidden.includes(state);
    const svg = draw("svg", { width: width + 90, height: height + 50, viewBox: `-20 -20 ${width + 90} ${height + 50}`, role: "img", "aria-label": label });
    const visible = lines.map(([labels, points]) => [labels.filter(seen), points]).filter(([labels]) => labels.length);
    const texts = [];
    const taken = [];
    for (const [labels, points] of visible) {
      const name = STATES[Math.min(...labels.map(([state]) => state))];
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
      const keys = labels.map(([state, tuple]) => key(state, tuple)).join(" ");
      svg.append(draw("path", { class: name, d: path, "marker-end": `url(#tip-${drawing}-${name})`, "data-t": keys }));
      const middle = points.length > 2 ? points[Math.floor(points.length / 2)] : [(x0 + xn) / 2 + (beside ? 36 : 0), (y0 + yn) / 2];
      const half = labels.reduce((sum, [state, tuple]) => sum + text(state, tuple).length + 2, 0) * 4.1;
      let y = middle[1] + 4;
      while (taken.some(([u, v, w]) => Math.abs(y - v) < 18 && Math.abs(middle[0] - u) < half + w)) y += 4;
      taken.push([middle[0], y, half]);
      const parts = labels.flatMap(([state, tuple], i) => [...(i ? [", "] : []), draw("tspan", { class: STATES[state], "data-t": key(state, tuple) }, text(state, tuple))]);
      texts.push(draw("text", { class: "relation", x: middle[0], y, "text-anchor": beside ? "start" : "middle" }, ...parts));
    }
    const tips = STATES.map((name) => draw("marker", { id: `tip-${drawing}-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" },
      draw("path", { class: name, d: "M0 0 10 5 0 10" })));
    svg.prepend(draw("defs", {}, ...tips));
    svg.append(...texts);
    for (const [state, tuple, x, y, w, h, attributes] of boxes) {
      if (hidden.includes(state)) continue;
      const name = draw("g", { class: STATES[state], "data-t": key(state, tuple) }, draw("rect", { x, y, width: w, height: h, rx: 5 }),
        draw("text", { x: x + w / 2, y: y + 21, "text-anchor": "middle", "font-weight": "bold" }, text(state, tuple)));
      svg.append(name);
      attributes.filter(seen).forEach(([own, at], i) =>
        svg.append(draw("text", { class: STATES[own], x: x + w / 2, y: y + 48 + 20 * i, "text-anchor": "middle", "data-t": key(own, at) }, text(own, at))));
    }
    return svg;
  };
  const VIEWS = { both: "Laid over each other", beside: "Side by side", candidate: "Caption", references: "References" };
  const graphs = (picture, strings, key, name, first) => {
    const single = (view) => graph(picture, strings, key, view, `scene graph, ${view}, ${name}`);
    const drawn = (view) => (view !== "beside" ? [single(view)] : ["candidate", "references"].map((side) =>
      make("figure", {}, make("figcaption", {}, VIEWS[side]), single(side))));
    const holder = make("div", { className: "graph", tabIndex: 0, role: "group", ariaLabel: `Scene graph, ${name}` }, ...drawn(first));
    const choices = Object.entries(VIEWS).map(([view, text]) => {
      const button = make("button", { type: "button", ariaPressed: String(view === first) }, text);
      button.addEventListener("click", () => {
        for (const other of choices) other.setAttribute("aria-pressed", String(other === button));
        holder.replaceChildren(...drawn(view));
      });
      return button;
    });
    return [make("h4", {}, "Scene graphs"), make("div", { className: "bar" }, ...choices), holder];
  };

  // SPICE-G: every tuple's best partner by degrees, and what would raise the score most.
  const gradedTable = (title, own, theirs) => {
    const body = [...own].sort((a, b) => b[1] * (1 - b[2]) - a[1] * (1 - a[2])).map(([strings, share, support, partner, slots, denied]) => {
      const alike = slots.map((value, i) => (value === null ? null : `${strings[i]} ${percent(value)}`)).filter((text) => text !== null);
      const parts = partner === null ? ["nothing like it"] : [`${tupleText(theirs[partner][0])}: ${alike.join(", ")}`];
      if (denied !== null) parts.push(`the references say ${tupleText(theirs[denied][0])}`);
      return make("tr", {}, make("td", {}, make("bdi", {}, tupleText(strings))), make("td", { className: "number" }, percent(share)),
        make("td", { className: "number" }, percent(support)), make("td", {}, parts.join("; ")));
    });
    return scrolled(make("table", { className: "tuples graded" }, make("caption", {}, title),
      headings(["Tuple", "Weight", "Supported", "Best partner, slot by slot"]), make("tbody", {}, ...body)), title);
  };
  const judged = (caption, words, threshold) => {
    const spans = [...words].sort((a, b) => b[3] - a[3]).flatMap(([, places, verdict, wrong, , instead]) => {
      const title = `${verdict}: wrong with probability ${percent(wrong)}${instead === null ? "" : `; references have ${instead}`}`;
      return places.map(([start, end]) => [start, end, verdict, "", title]);
    });
    const body = words.map(([word, , verdict, wrong, partner, instead]) => make("tr", {}, make("td", {}, make("bdi", {}, word)),
      make("td", {}, make("span", { className: `badge ${verdict}` }, verdict)), make("td", { className: "number" }, percent(wrong)),
      make("td", {}, partner === null ? "nothing like it" : make("bdi", {}, partner)), make("td", {}, instead === null ? "–" : make("bdi", {}, instead))));
    const title = `Which words are wrong: those above ${percent(threshold)} are flagged`;
    return [
      make("p", { className: "said judged", dir: "auto" }, ...marked(caption, spans)),
      scrolled(make("table", { className: "tuples graded verdicts" }, make("caption", {}, title),
        headings(["Word", "Verdict", "Probability of being wrong", "Most similar in the references", "References have instead"]), make("tbody", {}, ...body)), title),
    ];
  };
  const graded = (found, caption) => {
    if (!found) return [];
    const [score, mine, theirs, changes, order, words, threshold, meaning] = found;
    const shares = (pairs) => pairs.map(([word, share]) => `${word} ${signed(1000 * share)}`).join(", ");
    const acts = changes.map(([action, strings, by, after, gain]) => make("li", {},
      `${action} ${tupleText(strings)}${by === null ? "" : ` by ${tupleText(by)}`}: ${number(after)} (+${number(gain)})`));
    return [make("details", { className: "fold" }, make("summary", {}, `SPICE-G ${number(score)}: words judged, and what would raise it`),
      ...(order < 1 ? [make("p", { className: "note" }, `The order of the words leaves ${percent(order)} of it: they follow one another as words in captions do not.`)] : []),
      ...(acts.length ? [make("p", { className: "note" }, "What would raise it most:"), make("ol", { className: "changes" }, ...acts)] : []),
      ...judged(caption, words, threshold),
      ...(meaning ? [make("p", { className: "note meaning", dir: "auto" }, `Meaning of the whole: ${number(meaning[0])}, a sum over words. The caption's: ${shares(meaning[1])}. The references', those that count most: ${shares(meaning[2])}.`)] : []),
      gradedTable("The caption's tuples, those that cost most first", mine, theirs), gradedTable("The references' tuples, those that cost most first", theirs, mine))];
  };

  // What each word earned or cost of a score, in thousandths; the words' credits add up to it.
  const signed = (value) => `${value < 0 ? "−" : "+"}${(Math.abs(value) / 1000).toFixed(3)}`;
  const credited = ([ends, ...scores], caption) => {
    if (!ends) return [];
    const letters = Array.from(caption);
    const words = ends.flatMap((start, i) => (i % 2 ? [] : [letters.slice(start, ends[i + 1]).join("")]));
    return [make("details", { className: "fold" }, make("summary", {}, "What each word earned or cost"), ...scores.flatMap(([name, score, ...own]) => [
      make("p", { className: "note" }, `${name} ${number(score)} is the sum of`),
      make("p", { className: "credits", dir: "auto" }, ...words.map((word, i) => make("span", { className: own[i] > 0 ? "earned" : own[i] < 0 ? "cost" : "" },
        make("bdi", {}, word), make("small", { className: "number" }, signed(own[i]))))),
    ]))];
  };

  const stateOf = (view) => (view[2].length ? "matched" : view[6] ? "near" : "invented");
  // What the references have something else for is wrong, but nothing new.
  const labelOf = (view) => (stateOf(view) === "invented" && view[5] !== null ? "wrong" : LABELS[stateOf(view)]);
  const system = (data, place, s, [references, , theirs], [mine, partners, picture, grades, workings, credits, described], { links, view }) => {
    const caption = data.captions[s][place];
    const key = (state, tuple) => (state < 2 ? `r${tuple}` : `${s}c${tuple}`);
    mine.forEach(([, , found], i) => found.forEach((j) => links(`${s}c${i}`, `r${j}`)));
    mine.forEach(([, , , , , other], i) => { if (other !== null) links(`${s}c${i}`, `r${other}`); });
    const why = (view) => (view[2].length ? `${how(data, view[3])}: ${tupleText(theirs[view[2][0]][0])}`
      : reason(data, view[4], view[5] === null ? null : theirs[view[5]][0], view[6], "references have"));
    const own = mine.map((view, i) => [view[1], stateOf(view), `${s}c${i}`, `${tupleText(view[0])} ${labelOf(view)}: ${why(view)}`]);
    const ours = mine.map((view, i) => ({ strings: view[0], rules: rulesOf(data, view[1]), name: stateOf(view), label: labelOf(view), key: `${s}c${i}`,
      why: [why(view), mergedText(data, view[7])].filter(Boolean).join(" · "), reason: !view[2].length && (view[5] !== null || view[6]) ? why(view) : "",
      aspect: aspectOf(data, view[4]), difference: view[2].length ? null : view[5] === null ? "unsupported" : "contradicted" }));
    const told = theirs.map(([strings, mentions, merged], i) => {
      const [found, kind, other, near] = partners[i];
      const agreeing = new Set(mentions.map(([n]) => n)).size;
      const answer = found.length ? `by ${found.map((j) => tupleText(mine[j][0])).join(" ")}` : reason(data, kind, other === null ? null : mine[other][0], near, "the caption has");
      const name = found.length ? "matched" : "missed";
      return { strings, rules: rulesOf(data, mentions), name, label: LABELS[name], key: `r${i}`, agreeing,
        aspect: aspectOf(data, kind), difference: found.length ? null : "missing", reason: !found.length && (other !== null || near) ? answer : "",
        why: [answer, mergedText(data, merged), `${agreeing} of ${references.length} references`].filter(Boolean).join(" · ") };
    });
    const rows = [...told].sort((a, b) => b.agreeing - a.agreeing);
    const strings = (state, tuple) => (state < 2 ? theirs[tuple][0] : mine[tuple][0]);
    return make("article", { className: `system s${s % 7}`, ariaLabel: data.systems[s] },
      make("h4", { className: "name" }, make("bdi", {}, data.systems[s]), make("span", { className: "number" }, ` SPICE ${number(f1(data, place, s, 0))}`)),
      make("p", { className: "said", dir: "auto" }, ...marked(caption, spansOf(own, 0))),
      ...arithmetic(data, place, s), ...others(data, place, s, workings),
      ...graphs(picture, strings, key, data.systems[s], view),
      table("What the caption says", ours),
      make("details", { className: "fold", open: data.systems.length === 1 }, make("summary", {}, `What the references say: ${rows.filter((row) => row.name === "matched").length} of ${rows.length} found`), table("What the references say", rows)),
      ...spicegraphDescriptions({ make, tupleText, headings, scrolled }, described, [
        { name: "The caption", lacking: "Not in the references", texts: [caption], tuples: ours, open: data.systems.length === 1 },
        { name: "The references", lacking: "Not in the caption", texts: references, tuples: told, open: false }]),
      ...graded(grades, caption), ...credited(credits, caption));
  };

  /* Return the parts of an image: data is the index, details its entry in a chunk. */
  const image = (data, place, details, label, { view = "both" } = {}) => {
    const [references, source, theirs, systems] = details;
    const linked = new Map();
    const links = (one, other) => { for (const [a, b] of [[one, other], [other, one]]) linked.set(a, (linked.get(a) ?? new Set()).add(b)); };
    const found = theirs.map((_, i) => systems.flatMap(([, partners], s) => (partners[i][0].length ? [data.systems[s]] : [])));
    const refs = theirs.map(([strings, mentions], i) => [mentions, found[i].length ? "matched" : "missed", `r${i}`,
      `${tupleText(strings)} ${found[i].length ? `found by ${found[i].join(", ")}` : "missing"}`]);
    const lines = references.map((text, i) => make("li", { dir: "auto" }, ...marked(text, spansOf(refs, i))));
    const address = source ?? data.sources?.[place];
    const columns = systems.map((own, s) => system(data, place, s, details, own, { links, view }));
    const head = make("div", { className: address ? "head pictured" : "head" }, ...(address ? [make("img", { src: address, alt: `Image ${label}` })] : []),
      make("div", {}, make("h4", {}, "References"), make("ol", { className: "said" }, ...lines),
        make("ul", { className: "legend key", ariaLabel: "Marks" }, ...KEY.map(([name, text]) => make("li", {}, make("mark", { className: name }, text)))),
        make("p", { className: "note" }, "Point at a word, a tuple or a part of a graph, or move with Tab and the arrow keys: what belongs to it is outlined.")));
    const holder = make("div", { className: "image" }, head, make("div", { className: "columns systems" }, ...columns));
    const point = (node) => {
      const keys = new Set(node?.dataset.t.split(" ").filter(Boolean) ?? []);
      for (const key of [...keys]) for (const other of linked.get(key) ?? []) keys.add(other);
      for (const one of holder.querySelectorAll("[data-t]")) one.classList.toggle("pointed", one.dataset.t.split(" ").some((key) => keys.has(key)));
    };
    const at = (event) => (event.target.closest?.("[data-t]"));
    for (const kind of ["mouseover", "focusin", "click"]) holder.addEventListener(kind, (event) => { if (at(event)) point(at(event)); });
    holder.addEventListener("mouseleave", () => point(document.activeElement?.closest(".image [data-t]") ?? null));
    // Words of a caption and rows of a table are one stop each; arrows go from one to the next.
    holder.addEventListener("keydown", (event) => {
      const own = event.target.closest("mark, tr[data-t]");
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!own || !step || event.altKey || event.ctrlKey || event.metaKey) return;
      const all = [...own.parentElement.querySelectorAll(":scope > [data-t]")];
      all[Math.min(Math.max(all.indexOf(own) + step, 0), all.length - 1)].focus();
      event.preventDefault();
      event.stopPropagation();
    });
    return holder;
  };
  return { f1, image, make, number, unpack };
})();
