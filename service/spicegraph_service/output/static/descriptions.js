"use strict";
// Long captions of a report: their differences by aspect, and both sides by sentence, and by object with all that is
// said of it. A side has its texts, and of each tuple its strings, state, key, aspect, difference and reason.
const spicegraphDescriptions = ({ make, tupleText, headings, scrolled }, view, sides) => {
  if (!view) return [];
  const DIFFERENCES = ["contradicted", "unsupported", "missing"];
  const table = (title, kind, head, rows) => scrolled(make("table", { className: `tuples ${kind}` },
    make("caption", {}, title), headings(head), make("tbody", {}, ...rows)), title);
  const cell = (parts) => make("td", {}, ...parts.flatMap((part, i) => (i ? [" ", part] : [part])), ...(parts.length ? [] : ["–"]));
  const different = sides.flatMap(({ tuples }) => tuples.filter(({ difference }) => difference));
  const aspects = [...new Set(different.map(({ aspect }) => aspect))].sort().map((aspect) => make("tr", {},
    make("th", { scope: "row" }, aspect), ...DIFFERENCES.map((name) => make("td", { className: "number" },
      String(different.filter((tuple) => tuple.aspect === aspect && tuple.difference === name).length)))));
  const summary = aspects.length ? [table("Differences by aspect", "aspects", ["Aspect", "Contradicted", "Unsupported", "Missing"], aspects)] : [];
  return [...summary, ...view.flatMap(([sentences, objects], side) => {
    const { name, lacking, texts, tuples, open } = sides[side];
    const badge = (place, text) => make("span", { className: `badge ${tuples[place].name}`, title: tuples[place].label, "data-t": tuples[place].key }, make("bdi", {}, text));
    const claim = (place) => make("div", {}, badge(place, tupleText(tuples[place].strings)), " ", make("span", { className: "dim" }, tuples[place].reason));
    const lines = sentences.flatMap((own, caption) => {
      const letters = Array.from(texts[caption]);
      return own.map(([start, end, said, matched]) => make("tr", {},
        make("td", { dir: "auto" }, letters.slice(start, end).join("")),
        make("td", { className: "number" }, said.length ? `${matched} of ${said.length}` : "none said"),
        cell(said.filter((place) => tuples[place].name !== "matched").map(claim))));
    });
    const things = objects.map(([own, attributes, relations]) => make("tr", {},
      cell([badge(own, tuples[own].strings[0])]),
      cell(attributes.map((place) => badge(place, tuples[place].strings[1]))),
      cell(relations.map((place) => badge(place, tupleText(tuples[place].strings))))));
    return [make("details", { className: "fold", open }, make("summary", {}, `${name} by sentence and by object`),
      table(`${name} by sentence`, "described", ["Sentence", "Tuples with a partner", lacking], lines),
      table(`${name} by object`, "described", ["Object", "Attributes", "Relations"], things))];
  })];
};
