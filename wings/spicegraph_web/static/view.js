// Pages of this machine: a form asks while one types and puts the answer in its place (without this script its button
// does), parts that take time come later, and items are drawn by the report's image view.
{
  const { image, unpack } = spicegraphImage;
  const draw = async (within) => {
    for (const holder of within.querySelectorAll(".drawn:not(:has(*))")) {
      const { index, chunk, view } = holder.dataset;
      const [data, [details]] = await Promise.all([unpack(index), unpack(chunk)]);
      const id = data.ids[0];
      holder.replaceChildren(image(data, 0, details, id.startsWith('"') ? JSON.parse(id) : id, { view }));
    }
  };
  const fill = async (place, query) => {
    const answer = await fetch(`?${query}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return () => {
      place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      return draw(place);
    };
  };
  const later = async () => {
    for (const place of document.querySelectorAll("[data-later]")) (await fill(place, `part=${place.dataset.later}`))();
  };
  const form = document.querySelector("form[data-live]");
  if (form) {
    const place = document.getElementById(form.dataset.live);
    let [timer, number] = [0, 0];
    const ask = async () => {
      const asked = ++number;
      const wasReading = place.querySelector("[data-reading]");
      const query = new URLSearchParams([...new FormData(form)]);
      history.replaceState(null, "", `?${query}`);
      query.set("part", "1");
      try {
        const put = await fill(place, query);
        if (asked !== number) return;
        await put();
      } catch (error) {
        if (asked === number) place.textContent = `No answer: ${error.message}`;
      }
      if (wasReading && !place.querySelector("[data-reading]")) {
        await (await fill(document.getElementById("overview"), "part=overview"))();
        await later();
      }
      again();
    };
    const wait = (time) => { clearTimeout(timer); timer = setTimeout(ask, time); };
    const again = () => { if (place.querySelector("[data-reading]")) wait(700); };
    form.querySelector("button").hidden = true;
    form.addEventListener("input", () => wait(80));
    form.addEventListener("submit", (event) => { event.preventDefault(); wait(0); });
    again();
  }
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea, .graph, .scroll, mark, tr[data-t]") || event.altKey || event.ctrlKey || event.metaKey) return;
    document.querySelector(`a[data-key="${event.key}"]`)?.click();
  });
  Promise.all([draw(document), later()]).finally(() => { document.documentElement.dataset.ready = "true"; });
}
