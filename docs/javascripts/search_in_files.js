// A page that is opened as a file may not start a worker, which the search needs. There it runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.frame = frame.contentWindow
      this.waiting = []                 // messages that came before the script was there
      frame.contentDocument.open()
      this.frame.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
      this.frame.addEventListener("load", () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      })
      frame.contentDocument.write(`<script src="${new URL(url, location)}"></script>`)
      frame.contentDocument.close()
    }

    postMessage(data) {
      if (this.waiting)
        this.waiting.push(data)
      else
        this.frame.dispatchEvent(new MessageEvent("message", {data}))
    }
  }
}
