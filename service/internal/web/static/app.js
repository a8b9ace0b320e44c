// The page of the service. It has no state beyond this module: the token is gone when the
// page is left.

const period = 1000; // milliseconds from one answer to the next question
const points = 120; // of the chart

const $ = (id) => document.getElementById(id);
let token = "";
let before = null; // the status before this one
const rates = [];
const names = [...document.querySelectorAll("#table thead th")].map((cell) => cell.textContent);

// ask returns the object at a path, or throws an Error with the server's text.
async function ask(path, method = "GET") {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const answer = await fetch(path, { method, headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(15000) });
  const body = await answer.json();
  if (answer.ok) return body;
  if (answer.status === 401) {
    $("login").hidden = false;
    $("login-error").textContent = token ? body.detail : "";
    token = "";
  }
  throw new Error(body.detail);
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const few = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

function span(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return "0";
  if (size < 1e-3) return few.format(seconds * 1e6) + " µs";
  if (size < 1) return few.format(seconds * 1e3) + " ms";
  if (size < 120) return few.format(seconds) + " s";
  if (size < 7200) return few.format(seconds / 60) + " min";
  if (size < 172800) return few.format(seconds / 3600) + " h";
  if (size < 730 * 86400) return few.format(seconds / 86400) + " days";
  return few.format(seconds / 31556952) + " years";
}

function say(text, kind) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").className = kind;
}

function draw() {
  const top = Math.max(1, ...rates);
  const at = (rate, i) => `${((points - rates.length + i) * 600) / (points - 1)},${98 - (rate / top) * 96}`;
  $("curve").setAttribute("points", rates.map(at).join(" "));
  $("caption").textContent = `IDs and numbers per second in the last two minutes: at most ${number.format(Math.max(0, ...rates))}`;
}

function show(now) {
  say(now.ready ? "ready" : "not ready: " + now.reason, now.ready ? "good" : "bad");
  // After a restart of the server its counts begin anew. Every rate is that since the status before.
  const seconds = before ? now.uptime_seconds - before.uptime_seconds : 0;
  const issued = new Map(before?.sequences.map((s) => [s.name, s.issued]));
  if (seconds > 0 && now.items >= before.items) {
    rates.push((now.items - before.items) / seconds);
    if (rates.length > points) rates.shift();
    $("rate").textContent = number.format(rates.at(-1));
    draw();
  }
  before = now;
  $("items").textContent = number.format(now.items);
  $("uptime").textContent = span(now.uptime_seconds);
  $("lead").textContent = span(now.lead_seconds);
  $("most").textContent = span(now.max_lead_seconds);
  $("grant").textContent = span(now.grant_seconds);
  $("node").textContent = now.node;
  $("waits").textContent = number.format(now.waits);
  $("rejections").textContent = number.format(now.rejections);
  $("store").textContent = now.store || "not named";
  $("copies").textContent = now.vmclock === "nothing" ? "nothing" : `${now.vmclock}: ${now.copies} so far`;

  $("none").hidden = now.sequences.length > 0;
  $("table").hidden = now.sequences.length === 0;
  $("more").textContent = now.more ? `${now.more} more sequences are open.` : "";
  $("sequences").replaceChildren(...now.sequences.map((s) => {
    const row = document.createElement("tr");
    const rate = seconds > 0 && issued.has(s.name) ? number.format(Math.max(0, (s.issued - issued.get(s.name)) / seconds)) : "–";
    const cells = [s.name, s.mode, rate, number.format(s.issued), number.format(BigInt(s.reserved)), number.format(BigInt(s.last))];
    cells.forEach((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) cell.scope = "row";
      cell.textContent = text;
      cell.dataset.name = names[i];
      row.append(cell);
    });
    return row;
  }));
}

async function poll() {
  for (;;) {
    if (!document.hidden && $("login").hidden) {
      try {
        show(await ask("/v1/status"));
      } catch (error) {
        before = null;
        say($("login").hidden ? "no answer: " + error.message : "a token is needed", "bad");
      }
    }
    await new Promise((done) => setTimeout(done, period));
  }
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  $("login").hidden = true;
});

$("decode").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("decode-error").textContent = "";
  $("decoded").replaceChildren();
  try {
    const d = await ask("/v1/ids/" + encodeURIComponent($("id").value.trim()));
    const parts = Object.entries(d.parts).map(([name, value]) => `${name} ${value}`).join(", ");
    const rows = [
      ["Time", d.time],
      ["In your time zone", new Date(d.time).toLocaleString()],
      ["Node", parts ? `${d.node} (${parts})` : d.node],
      ["Number within its tick", d.sequence],
    ];
    $("decoded").replaceChildren(...rows.map(([name, value]) => {
      const row = document.createElement("div");
      for (const [kind, text] of [["dt", name], ["dd", value]]) {
        const cell = document.createElement(kind);
        cell.textContent = text;
        row.append(cell);
      }
      return row;
    }));
  } catch (error) {
    $("decode-error").textContent = error.message;
  }
});

$("take").addEventListener("click", async () => {
  $("decode-error").textContent = "";
  try {
    $("id").value = (await ask("/v1/ids", "POST")).ids[0];
    $("decode").requestSubmit();
  } catch (error) {
    $("decode-error").textContent = error.message;
  }
});

poll();
