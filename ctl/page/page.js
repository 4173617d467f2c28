"use strict";

// Swagger UI selects its dark colours by a class and not by the media query.
const dark = matchMedia("(prefers-color-scheme: dark)");
const applyScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyScheme);
applyScheme();

const element = (name, text, properties = {}) =>
  Object.assign(document.createElement(name), { textContent: text, ...properties });

const display = (value) => {
  if (value === undefined || value === null) return "";
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return new Date(value).toLocaleTimeString();
  return String(value);
};

// The records of the previous refresh, as JSON, or null before the first one. New records are highlighted.
let previous = null;

async function refresh() {
  const response = await fetch("/stored");
  const news = document.getElementById("news");
  if (!response.ok) {
    news.textContent = `Cannot read the stored records: ${response.status}`;
    return;
  }
  const tables = document.getElementById("tables");
  const current = new Set();
  const added = [];
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
        row.append(...columns.map((column) => element("td", display(record[column]))));
        current.add(text);
        if (previous && !previous.has(text)) {
          row.className = "new";
          added.push(`${title}: ${display(record[columns[1]])}`);
        }
      }
    }
    const scroll = element("div", "", { className: "scroll", tabIndex: records.length > 0 ? 0 : -1 });
    scroll.append(table);
    tables.append(scroll);
  }
  if (added.length > 0) news.textContent = `New: ${added.join("; ")}`;
  else if (previous) news.textContent = "The last request changed nothing.";
  else if (current.size > 0) news.textContent = `${current.size} records.`;
  previous = current;
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
