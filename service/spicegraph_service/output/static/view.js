"use strict";
// A form asks while one types and puts the answer in its place; without this script its button does.
const form = document.querySelector("form[data-live]");
if (form) {
  const place = document.getElementById(form.dataset.live);
  let [timer, number] = [0, 0];
  const asked = () => new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  const ask = async () => {
    const mine = ++number;
    const query = asked();
    history.replaceState(null, "", `?${query}`);
    query.set("part", "1");
    try {
      const answer = await fetch(`?${query}`);
      const text = await answer.text();
      if (mine !== number) return;
      if (!answer.ok) throw new Error(text);
      const page = new DOMParser().parseFromString(text, "text/html");
      place.replaceChildren(...page.body.childNodes);
    } catch (error) {
      if (mine === number) place.textContent = `No answer: ${error.message}`;
    }
    again();
  };
  const later = (wait) => { clearTimeout(timer); timer = setTimeout(ask, wait); };
  const again = () => { if (place.querySelector("[data-reading]")) later(700); };
  form.querySelector("button").hidden = true;
  form.addEventListener("input", () => later(80));
  form.addEventListener("submit", (event) => { event.preventDefault(); later(0); });
  again();
}
for (const link of document.querySelectorAll("a[data-back]")) {
  link.addEventListener("click", (event) => {
    if (document.referrer === "" && history.length > 1) { event.preventDefault(); history.back(); }
  });
}
document.documentElement.dataset.ready = "true";
