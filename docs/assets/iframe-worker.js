// Search runs in a worker, and browsers refuse workers to pages opened from a disk.
// There, a hidden frame does the same: it loads the same script and passes messages.
"use strict";
if (location.protocol === "file:") {
  // The theme looks for this name to find its scripts from inside a frame.
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.ready = false;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.srcdoc = "<!doctype html><title>search</title><body></body>";
      this.frame.addEventListener("load", () => this.start(url), { once: true });
      document.body.appendChild(this.frame);
    }

    async start(url) {
      const scope = this.frame.contentWindow;
      scope.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      scope.importScripts = async (...scripts) => {
        for (const script of scripts) await this.load(script);
      };
      await this.load(url);
      this.ready = true;
      this.waiting.splice(0).forEach((data) => this.postMessage(data));
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const page = this.frame.contentDocument;
        const script = page.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        page.body.appendChild(script);
      });
    }

    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      const scope = this.frame.contentWindow;
      scope.dispatchEvent(new scope.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
