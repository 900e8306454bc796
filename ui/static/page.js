// Follows the cluster: when the server tells of a newer log index, what this view shows is fetched again and put in place. What a
// job writes is followed apart, as it is written. Keys: / to search, j and k through lists.
const main = document.getElementById("main"), live = document.getElementById("live");
let busy = false, again = false;

// still: a question stays as it is until it is answered, as does what is dear to find out, and what somebody is about to choose.
const still = () => main.querySelector("form.ask, [data-still], .bulk input:checked") || main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");

async function renew() {
  if (still()) return;
  if (busy || document.hidden) { again = true; return; }
  busy = true;
  try {
    const reply = await fetch(location.href, { headers: { "X-Part": "1" } });
    if (reply.ok && !still()) replace(await reply.text());
  } finally {
    busy = false;
    soon();
    if (again && !document.hidden) { again = false; setTimeout(renew, 1000); }
  }
}

// soon fetches a view again that was not finished.
const soon = () => { if (main.querySelector("[data-again]")) setTimeout(renew, 500); };
soon();

// replace puts a newer view in place; what is to be kept is moved over, with its place and the focus.
function replace(text) {
  const next = document.createElement("main"), at = [scrollX, scrollY], focus = document.activeElement;
  next.innerHTML = text;
  for (const old of main.querySelectorAll("[data-keep]")) {
    const to = next.querySelector("#" + old.id), box = old.querySelector(".scroll"), top = box?.scrollTop;
    if (!to) continue;
    to.replaceWith(old);
    if (box) queueMicrotask(() => { box.scrollTop = top; });
  }
  main.replaceChildren(...next.childNodes);
  if (focus && main.contains(focus)) focus.focus({ preventScroll: true });
  scrollTo(...at);
  lines();
}
document.addEventListener("visibilitychange", () => { if (!document.hidden && again) { again = false; renew(); } });

const source = main.querySelector("[data-alone]") ? {} : new EventSource("/live"); // a login tells of nothing
let lost = false; // after a break another server may answer, and what it tells counts; else a page may know more than followers are told
source.onopen = () => { live.textContent = "live"; };
source.onerror = () => { live.textContent = source.readyState === 2 ? "snapshot; reload to update" : "server unreachable; retrying"; lost = true; };
source.onmessage = (e) => {
  const news = lost ? e.data !== main.dataset.index : Number(e.data) > Number(main.dataset.index);
  lost = false;
  if (news) { main.dataset.index = e.data; renew(); }
};

// follow adds to a log what is written; who reads further up stays where they are.
const most = 1 << 20; // characters kept
async function follow(pre, box, told) {
  for (let end = pre.dataset.end; pre.isConnected;) {
    try {
      const reply = await fetch(pre.dataset.more + "&from=" + end);
      if (!reply.ok) throw new Error(await reply.text());
      const text = await reply.text(), start = reply.headers.get("X-Start");
      if (reply.headers.get("X-Over")) { told.textContent = "job ended"; return; }
      told.textContent = "following";
      if (text || start !== end) {
        const up = box.scrollTop < -2, height = box.scrollHeight, top = box.scrollTop;
        if (start !== end) pre.textContent = "";
        pre.append(text);
        if (pre.textContent.length > most && !up) pre.textContent = pre.textContent.slice(-most / 2);
        if (up) box.scrollTop = top - (box.scrollHeight - height);
      }
      end = reply.headers.get("X-End");
    } catch (e) {
      told.textContent = String(e.message || e).trim();
      await new Promise((ok) => setTimeout(ok, 2000));
    }
  }
}
const tail = document.getElementById("tail");
if (tail?.dataset.more) follow(tail, document.getElementById("scroll"), document.getElementById("follows"));

// lines puts the last lines of a job on its page, once its node has told them, and again when it has started and ended.
let state;
function lines() {
  const last = document.getElementById("last"), word = main.querySelector(".head .state")?.textContent;
  if (!last || word === state) return;
  state = word;
  fetch(last.dataset.lines).then((r) => r.ok ? r.text() : "").then((text) => show(last, text));
}
function show(last, text) {
  const found = new DOMParser().parseFromString(text, "text/html"), pre = document.createElement("pre");
  const all = found.getElementById("tail"), note = found.querySelector("#log .note");
  if (!all && !note) return;
  pre.textContent = all ? all.textContent.trimEnd().split("\n").slice(-20).join("\n") || "no output yet" : note.textContent;
  last.replaceChildren(pre);
}
lines();

// What a job that is being written would come to is told beside it.
const form = document.getElementById("submit");
if (form) {
  let wait, asks;
  const check = async () => {
    asks?.abort();
    asks = new AbortController();
    try {
      const reply = await fetch("/submit/check", { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "X-Part": "1" }, signal: asks.signal });
      const box = document.getElementById("check");
      if (reply.ok) box.innerHTML = await reply.text(); else box.textContent = "Not checked: the session may have expired. Reload the page.";
    } catch { /* a later one asks */ }
  };
  form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(check, 600); });
  check();
}

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
  if (e.key === "/") { e.preventDefault(); document.getElementById("find").focus(); }
  if (e.key === "j" || e.key === "k") {
    const list = [...main.querySelectorAll("td.id a, a.bar, .tile")], at = list.indexOf(document.activeElement);
    list[Math.min(Math.max(at + (e.key === "j" ? 1 : -1), 0), list.length - 1)]?.focus();
  }
});
