// The connection to the server: questions out, messages in, and again when it is lost.

export class Connection {
  constructor(onMessage, onLost) {
    this.onMessage = onMessage;
    this.onLost = onLost;
    this.wait = 500;
    this.open();
  }

  open() {
    const place = new URL("socket", location.href);
    place.protocol = "ws:";
    place.hash = "";
    this.socket = new WebSocket(place);
    this.socket.addEventListener("open", () => { this.wait = 500; });
    this.socket.addEventListener("message", (event) => this.onMessage(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => {
      this.onLost();
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, 15000);
    });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
