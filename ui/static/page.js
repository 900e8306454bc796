// Follows the cluster: when the server tells of a newer log index, what this view shows is fetched again and put in place.
const main = document.getElementById("main"), live = document.getElementById("live");
let busy = false, again = false;

async function renew() {
  if (main.querySelector("form[method=post], [data-still]")) return; // a question stays as it is until it is answered, and what is dear to find out
  if (busy) { again = true; return; }
  busy = true;
  try {
    const held = main.contains(document.activeElement) && document.activeElement.matches("input, pre");
    const reply = await fetch(location.href, { headers: { "X-Part": "1" } });
    if (reply.ok && !held) {
      const at = [scrollX, scrollY];
      main.innerHTML = await reply.text();
      scrollTo(...at);
    }
  } finally {
    busy = false;
    if (again) { again = false; setTimeout(renew, 1000); }
  }
}

const source = new EventSource("/live");
source.onopen = () => { live.textContent = "live"; };
source.onerror = () => { live.textContent = "the server does not answer; trying again"; };
source.onmessage = (e) => {
  if (e.data !== main.dataset.index) { main.dataset.index = e.data; renew(); }
};
