"use strict";
// Long captions of a report: by sentence, and by object with all that is said of it. A side has its texts, and of each
// tuple its strings, its state and its key.
const spicegraphDescriptions = ({ make, tupleText, headings, scrolled }, view, sides) => {
  if (!view) return [];
  const table = (title, head, rows) => scrolled(make("table", { className: "tuples described" },
    make("caption", {}, title), headings(head), make("tbody", {}, ...rows)), title);
  const cell = (parts) => make("td", {}, ...parts.flatMap((part, i) => (i ? [" ", part] : [part])), ...(parts.length ? [] : ["–"]));
  return view.flatMap(([sentences, objects], side) => {
    const { name, lacking, texts, tuples } = sides[side];
    const badge = (place, text) => make("span", { className: `badge ${tuples[place].name}`, title: tuples[place].name, "data-t": tuples[place].key }, make("bdi", {}, text));
    const lines = sentences.flatMap((own, caption) => {
      const letters = Array.from(texts[caption]);
      return own.map(([start, end, said, matched]) => make("tr", {},
        make("td", { dir: "auto" }, letters.slice(start, end).join("")),
        make("td", { className: "number" }, `${matched} of ${said.length}`),
        cell(said.filter((place) => tuples[place].name !== "matched").map((place) => badge(place, tupleText(tuples[place].strings))))));
    });
    const things = objects.map(([own, attributes, relations]) => make("tr", {},
      cell([badge(own, tuples[own].strings[0])]),
      cell(attributes.map((place) => badge(place, tuples[place].strings[1]))),
      cell(relations.map((place) => badge(place, tupleText(tuples[place].strings))))));
    return [make("details", { className: "fold" }, make("summary", {}, `${name} by sentence and by object`),
      table(`${name} by sentence`, ["Sentence", "Tuples with a partner", lacking], lines),
      table(`${name} by object`, ["Object", "Attributes", "Relations"], things))];
  });
};
