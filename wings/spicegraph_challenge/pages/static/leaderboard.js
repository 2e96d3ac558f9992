"use strict";
// Columns sort by a click on their heading; a second click turns the order round. What is undefined stays last.
for (const table of document.querySelectorAll("table.board")) {
  const body = table.tBodies[0];
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, body, heading));
  }
}

function sort(table, body, heading) {
  const numeric = heading.dataset.kind !== "text";
  const first = heading.dataset.kind === "score" ? "descending" : "ascending";
  const other = first === "descending" ? "ascending" : "descending";
  const order = heading.getAttribute("aria-sort") === first ? other : first;
  const place = heading.cellIndex;
  const rows = [...body.rows].map((row) => [key(row.cells[place], numeric), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const difference = numeric ? a - b : a.localeCompare(b);
    return order === "ascending" ? difference : -difference;
  });
  body.append(...rows.map(([, row]) => row));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
}

function key(cell, numeric) {
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (!numeric) return text;
  return text === "" ? null : Number(text);
}
