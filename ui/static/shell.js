// A terminal in a job: what is typed and shown goes over a WebSocket, binary; how large it is as text.
const box = document.getElementById("terminal"), told = document.getElementById("told");

// The page allows no styles but those of files. What the terminal would put into style elements goes into style sheets of scripts.
const create = document.createElement.bind(document);
document.createElement = (name, ...rest) => {
  if (name !== "style") return create(name, ...rest);
  const sheet = new CSSStyleSheet(), e = create("i");
  e.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(e, "textContent", { set: (text) => sheet.replaceSync(text) });
  return e;
};

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const theme = () => ({ background: color("--card"), foreground: color("--ink"), cursor: color("--ink"), selectionBackground: color("--booked") });
const term = new Terminal({ fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace', fontSize: 13, theme: theme(), minimumContrastRatio: 4.5, scrollback: 5000 });
const fit = new FitAddon.FitAddon(), text = new TextEncoder();
term.loadAddon(fit);
box.replaceChildren();
term.open(box);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { term.options.theme = theme(); });

const socket = new WebSocket(new URL(box.dataset.socket, location.href).href.replace(/^http/, "ws"));
socket.binaryType = "arraybuffer";
const send = (data) => { if (socket.readyState === 1) socket.send(data); };
const tell = () => send(JSON.stringify({ cols: term.cols, rows: term.rows }));
socket.onopen = () => { told.textContent = "connected"; fit.fit(); tell(); term.focus(); };
socket.onmessage = (e) => term.write(new Uint8Array(e.data));
socket.onclose = (e) => { told.textContent = (e.reason || "connection lost") + "; reload to reconnect"; term.options.disableStdin = true; };
term.onData((data) => send(text.encode(data)));
term.onBinary((data) => send(Uint8Array.from(data, (c) => c.charCodeAt(0))));
term.onResize(tell);
new ResizeObserver(() => fit.fit()).observe(box);
