"use strict";

// The viewer knows its colours by a class alone.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

const element = (name, text, properties = {}) =>
  Object.assign(document.createElement(name), { textContent: text, ...properties });

const shown = (value) => {
  if (value === undefined || value === null) return "";
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return new Date(value).toLocaleTimeString();
  return String(value);
};

// Every record that was shown before, to mark those that are new.
let known = null;

async function refresh() {
  const response = await fetch("/stored");
  const news = document.getElementById("news");
  if (!response.ok) {
    news.textContent = `What is stored cannot be read: ${response.status}`;
    return;
  }
  const tables = document.getElementById("tables");
  const found = new Set();
  let added = [];
  tables.replaceChildren();
  for (const { kind, columns, records } of await response.json()) {
    const title = kind.replaceAll("-", " ");
    const table = element("table", "");
    table.dataset.kind = kind;
    table.append(element("caption", `${title} (${records.length})`));
    if (records.length > 0) {
      const head = table.createTHead().insertRow();
      head.append(...columns.map((column) => element("th", column.replaceAll("_", " "), { scope: "col" })));
      const body = table.createTBody();
      for (const record of records) {
        const text = JSON.stringify([kind, record]);
        const row = body.insertRow();
        row.append(...columns.map((column) => element("td", shown(record[column]))));
        found.add(text);
        if (known && !known.has(text)) {
          row.className = "new";
          added.push(`${title}: ${columns.slice(1, 3).map((column) => shown(record[column])).join(", ")}`);
        }
      }
    }
    const scroll = element("div", "", { className: "scroll", tabIndex: records.length > 0 ? 0 : -1 });
    scroll.append(table);
    tables.append(scroll);
  }
  if (added.length > 0) news.textContent = `New: ${added.join("; ")}`;
  else if (known) news.textContent = "The last request changed nothing.";
  else if (found.size > 0) news.textContent = `${found.size} records.`;
  known = found;
}

window.viewer = SwaggerUIBundle({
  url: "/openapi.yaml",
  dom_id: "#reference",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  validatorUrl: null,
  onComplete: () => {
    const key = document.querySelector("meta[name=demo-key]").content;
    window.viewer.preauthorizeApiKey("key", key);
  },
  responseInterceptor: (response) => {
    if (!response.url.endsWith("/openapi.yaml")) refresh();
    return response;
  },
});

refresh();
