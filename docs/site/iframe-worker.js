// Browsers start no worker for a page that is opened from a folder. There the search runs in a hidden frame instead, whose
// name, IFrameWorker, the theme knows.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.onmessage = null;
      this.addEventListener("message", (event) => this.onmessage?.(event));
      this.started = new Promise((resolve) => {
        this.frame = document.createElement("iframe");
        this.frame.hidden = true;
        document.body.append(this.frame);
        const inside = this.frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
        this.load(url).then(resolve);
      });
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }
    postMessage(data) {
      this.started.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
