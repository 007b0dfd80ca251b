// What is shown is told to the server, which draws the files. No script runs there for it.

const TELL_MS = 150; // after the last change: a slider that is dragged changes many times

class Teller {
  /** `shown` gives `{ url, view }`, or null while there is nothing; `say` tells the reader. */
  constructor(shown, say, signal) {
    Object.assign(this, { shown, say });
    // In the capture phase, so that it comes before the button's own listener.
    document.addEventListener("click", (event) => this.hold(event), { capture: true, signal });
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  /** Tell it once nothing has changed for a moment. */
  soon() {
    clearTimeout(this.timer);
    // Where this fails, the next download tries again and says so.
    this.timer = setTimeout(() => this.tell().catch(() => {}), TELL_MS);
  }

  get known() {
    const shown = this.shown();
    return !shown || this.told === JSON.stringify(shown);
  }

  /** One request at a time, so that an older one never comes last. */
  tell() {
    this.telling ??= this.put().finally(() => {
      this.telling = null;
    });
    return this.telling;
  }

  async put() {
    while (!this.known) {
      const shown = this.shown();
      const body = new FormData();
      body.append("file", new Blob([JSON.stringify(shown.view)], { type: "application/json" }), "screen.json");
      const token = document.cookie.match(/(?:^|; )_streamlit_xsrf=([^;]*)/)?.[1];
      const headers = token ? { "X-Xsrftoken": decodeURIComponent(token).replaceAll('"', "") } : {};
      const answer = await fetch(shown.url, { method: "PUT", body, headers });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.told = JSON.stringify(shown);
    }
  }

  /** A file that is asked for waits until the server knows what is on the screen. */
  async hold(event) {
    const button = event.target.closest?.("[data-testid=stDownloadButton] button");
    if (!button || this.known) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    try {
      await this.tell();
    } catch (error) {
      this.say(`Not saved, since the server cannot be told what is shown (${error.message}): reload the page.`);
      return;
    }
    button.click();
  }
}
