// The search of these pages runs in a Worker, which browsers refuse to pages that are opened from disk. There, and only
// there, the Worker's script runs in a hidden frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #frame = document.createElement("iframe");
    #ready = false;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      this.#frame.addEventListener("load", () => this.#start(url), { once: true });
      document.body.append(this.#frame);
    }

    #start(url) {
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => {
        this.#ready = true;
        this.#waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      script.src = url;
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.#ready) {
        const inside = this.#frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      } else {
        this.#waiting.push(data);
      }
    }
  };
}
