"use strict";
// Uploads show how far they are; without this script the form is sent as it is.
for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const shown = form.querySelector("[data-progress]");
    const [bar, text, button] = [shown.querySelector("progress"), shown.querySelector("[role=status]"), form.querySelector("button")];
    const request = new XMLHttpRequest();
    const failed = (message) => { text.textContent = message; text.className = "bad"; button.disabled = false; };
    request.upload.onprogress = (now) => { bar.value = now.loaded / now.total; text.textContent = `${Math.floor((100 * now.loaded) / now.total)} %`; };
    request.upload.onload = () => { text.textContent = "The server checks the file …"; };
    request.onerror = () => failed("The connection broke. Nothing was stored; try again.");
    request.onload = () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* not from this server */ }
      if (answer.location) location.assign(answer.location);
      else failed([answer.error ?? `The server answers ${request.status}.`, ...(answer.faults ?? []).map(([field, reason]) => `${field}: ${reason}`)].join("\n"));
    };
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    const data = new FormData(form);
    shown.hidden = false;
    text.className = "";
    button.disabled = true;
    request.send(data);
  });
}
// A submission under way: its state, until it has ended.
for (const place of document.querySelectorAll("[data-watch]")) {
  const [text, bar] = [place.querySelector("[role=status]"), place.querySelector("progress")];
  const look = async () => {
    try {
      const answer = await fetch(place.dataset.watch, { headers: { Accept: "application/json" } });
      const state = await answer.json();
      if (!answer.ok) throw new Error(state.error);
      if (state.ended) return location.reload();
      if (text.textContent !== state.line) text.textContent = state.line;
      if (state.progress === null) bar.removeAttribute("value"); else bar.value = state.progress;
    } catch (error) { text.textContent = `The server does not answer (${error.message}); this page tries again.`; }
    setTimeout(look, 1000);
  };
  setTimeout(look, 500);
}
document.documentElement.dataset.ready = "true";
