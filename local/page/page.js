"use strict";

const POLL_MILLISECONDS = 1200;
const MAX_TABLE_ROWS = 500;
const AUDIT = ["created_at", "created_by", "updated_at", "updated_by"];
const PARTS = { org_id: "organization", project_id: "project", team_id: "team" };
const SHOWN_HEADERS = ["x-resource-id", "x-resource-state", "x-request-id", "retry-after", "www-authenticate"];

const demo = document.querySelector("meta[name=demo]").dataset;
// What the reader has entered, for all operations: parameters by name, and bodies by operation.
const entered = { parameters: { key: demo.key }, bodies: {} };
// The last outcome of each operation.
const outcomes = {};
let contract, operations, current;
let language = "curl";

const byId = (id) => document.getElementById(id);
const words = (name) => name.replaceAll(/[_-]/g, " ");
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const uncapitalized = (text) => text.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// Text is always inserted as text nodes, because it can come from records.
function element(name, attributes, ...children) {
  const created = document.createElement(name);
  const given = Object.entries(attributes).filter(([, value]) => (value ?? false) !== false);
  for (const [key, value] of given) created.setAttribute(key, value);
  created.append(...children.flat());
  return created;
}

// Text of the contract, in which backticks surround code.
function prose(text = "") {
  return text.trim().split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

async function getJson(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

// ---- The contract

const resolve = (node) =>
  node?.$ref?.slice(2).split("/").reduce((parent, name) => parent[name], contract) ?? node;

function operationsOf(paths) {
  const entries = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })));
  return entries.map((operation) => {
    const content = operation.requestBody.content["application/json"];
    return {
      ...operation,
      id: operation.operationId,
      method: operation.method.toUpperCase(),
      isOpen: demo.open === "true" && operation.security.some((one) => !Object.keys(one).length),
      parameters: (operation.parameters ?? []).map(resolve),
      schema: resolve(content.schema),
      example: format(content.example),
    };
  });
}

// ---- Literals

const JSON_WORDS = { null: "null", true: "true", false: "false" };
const PYTHON_WORDS = { null: "None", true: "True", false: "False" };

// A parsed JSON value as a literal. Short values are on one line, except for the outermost one.
function format(value, vocabulary = JSON_WORDS, indent = "") {
  if (value === null || typeof value === "boolean") return vocabulary[value];
  if (typeof value !== "object") return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const inner = `${indent}  `;
  const entries = Object.entries(value).map(([name, entry]) => {
    const text = format(entry, vocabulary, inner);
    return Array.isArray(value) ? text : `${JSON.stringify(name)}: ${text}`;
  });
  const line = open + entries.join(", ") + close;
  const isShort = indent && indent.length + line.length <= 56 && !line.includes("\n");
  if (isShort || entries.length === 0) return line;
  return `${open}\n${entries.map((entry) => inner + entry).join(",\n")}\n${indent}${close}`;
}

// The text of an attribute. Other programs can store any type.
const textOf = (value = "") => (typeof value === "string" ? value : format(value));

function parse(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: error.message };
  }
}

// ---- Requests

const isHeader = (parameter) => parameter.in === "header";
const valueOf = (parameter) => entered.parameters[parameter.name] ?? parameter.example ?? "";
const bodyOf = (operation) => entered.bodies[operation.id] ?? operation.example;

function pathOf(operation) {
  return operation.path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(valueOf(operation.parameters.find((one) => one.name === name))));
}

function headersOf(operation) {
  const { key } = entered.parameters;
  return [
    ["Authorization", key && `Bearer ${key}`],
    ["Content-Type", "application/json"],
    ...operation.parameters.filter(isHeader).map((one) => [one.name, valueOf(one)]),
  ].filter(([, value]) => value);
}

// ---- Samples

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const quote = (text) => JSON.stringify(text);
const headerLines = (headers, indent) =>
  headers.map((pair) => `${indent}${pair.map(quote).join(": ")},`).join("\n");

const SAMPLES = {
  curl: (method, url, headers, body) =>
    [
      `curl -i ${shell(url)}`,
      ...headers.map((pair) => `-H ${shell(pair.join(": "))}`),
      `-d ${shell(format(body))}`,
    ].join(" \\\n  "),
  Python: (method, url, headers, body) => `import json
import urllib.error
import urllib.request

body = ${format(body, PYTHON_WORDS)}
request = urllib.request.Request(
    ${quote(url)},
    method=${quote(method)},
    headers={
${headerLines(headers, "        ")}
    },
    data=json.dumps(body).encode(),
)
try:
    with urllib.request.urlopen(request) as response:
        print(response.status, response.headers["x-request-id"])
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`,
  // A literal with the member __proto__ would set its prototype.
  TypeScript: (method, url, headers, body) => `const body = ${format(body).replaceAll(
    '"__proto__":', '["__proto__"]:')};
const response = await fetch(${quote(url)}, {
  method: ${quote(method)},
  headers: {
${headerLines(headers, "    ")}
  },
  body: JSON.stringify(body),
});
console.log(response.status, response.headers.get("x-request-id"), await response.text());
export {};`,
};

function showSample() {
  const { value, error } = parse(bodyOf(current));
  const url = location.origin + pathOf(current);
  byId("sample").textContent = error
    ? "The body is not JSON."
    : SAMPLES[language](current.method, url, headersOf(current), value);
  byId("sample").setAttribute("aria-labelledby", `language-${language}`);
  byId("copy").disabled = Boolean(error);
  for (const tab of byId("languages").children) {
    const isSelected = tab.textContent === language;
    tab.setAttribute("aria-selected", isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
  }
}

function showLanguages() {
  const names = Object.keys(SAMPLES);
  const select = (index) => {
    language = names[(index + names.length) % names.length];
    showSample();
    byId(`language-${language}`).focus();
  };
  const tabs = names.map((name, index) => {
    const attributes = { id: `language-${name}`, role: "tab", "aria-controls": "sample" };
    const tab = element("button", attributes, name);
    tab.onclick = () => select(index);
    tab.onkeydown = ({ key }) => {
      if (key === "ArrowRight") select(index + 1);
      if (key === "ArrowLeft") select(index - 1);
    };
    return tab;
  });
  byId("languages").replaceChildren(...tabs);
}

async function copySample() {
  const button = byId("copy");
  try {
    await navigator.clipboard.writeText(byId("sample").textContent);
    button.textContent = "Copied";
  } catch {
    // Without HTTPS, a browser allows this only for addresses of this machine.
    getSelection().selectAllChildren(byId("sample"));
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

// ---- What an operation needs

function field(name, value, note, description) {
  const id = `field-${name}`;
  const input = element("input", {
    id, value, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-describedby": `${id}-hint`,
  });
  input.oninput = () => {
    entered.parameters[name] = input.value;
    showSample();
  };
  const label = name === "key" ? "API key" : name;
  return element("div", { class: note ? "field wide" : "field" },
    element("label", { for: id }, label, " ", element("small", {}, note)), input,
    element("p", { id: `${id}-hint` }, prose(description)));
}

function showForm() {
  const { description } = contract.components.securitySchemes.key;
  const note = current.isOpen ? "optional, sent as Authorization" : "sent as Authorization";
  byId("fields").replaceChildren(
    field("key", entered.parameters.key, note, description),
    ...current.parameters.map((one) =>
      field(one.name, valueOf(one), isHeader(one) ? "optional header" : "", one.description)));
  byId("body").value = bodyOf(current);
  showBody();
}

function showBody() {
  const text = byId("body").value;
  byId("body").rows = Math.min(Math.max(text.split("\n").length, 3), 14);
  const { error } = parse(text);
  byId("hint").textContent = error ? `Not JSON: ${error}` : "";
  showSample();
}

function reset() {
  for (const { name } of current.parameters) delete entered.parameters[name];
  delete entered.bodies[current.id];
  entered.parameters.key = demo.key;
  showForm();
}

function schemaRows(schema, prefix = "") {
  return Object.entries(schema.properties ?? {}).flatMap(([name, reference]) => {
    const property = resolve(reference);
    const items = resolve(property.items);
    const { minLength = 0, maxLength, minItems, maxItems, minimum, maximum } = property;
    const facts = [
      [property.type].flat().join(" or "),
      schema.required?.includes(name) ? "required" : "optional",
      maxLength && `${minLength} to ${maxLength} characters`,
      maxItems && `${minItems} to ${maxItems} entries`,
      maximum && `${minimum} to ${maximum}`,
    ];
    const path = prefix + name + (items ? "[]" : "");
    const type = element("small", {}, facts.filter(Boolean).join(", "));
    return [
      element("dt", {}, element("code", {}, path), " ", type),
      element("dd", {}, prose(property.description)),
      ...schemaRows(items ?? property, `${path}.`),
    ];
  });
}

function headRow(names) {
  const cells = names.map((name) => element("th", { scope: "col" }, name));
  return element("thead", {}, element("tr", {}, cells));
}

function errorRows([status, reference]) {
  const { description, content = {} } = resolve(reference);
  const examples = Object.values(content).flatMap((one) => Object.values(one.examples));
  return examples.map(({ value }) => {
    const { code, reason, detail, message } = value;
    const cause = code ? element("code", {}, code) : "from API Gateway";
    return element("tr", {},
      element("th", { scope: "row" }, status),
      element("td", {}, cause, reason ? element("small", {}, reason) : ""),
      element("td", {}, element("details", {}, element("summary", {}, prose(detail ?? message)),
        element("p", {}, prose(description)), element("pre", {}, format(value)))));
  });
}

function showOperation(operation) {
  current = operation;
  const segments = operation.path.split(/(\{\w+\})/);
  const path = segments.flatMap((part) =>
    part.startsWith("{") ? [element("wbr", {}), element("b", {}, part)] : part);
  byId("title").textContent = operation.summary;
  byId("path").replaceChildren(element("span", {}, operation.method), element("code", {}, path));
  byId("description").replaceChildren(...prose(operation.description));
  showForm();
  showOutcome();
  byId("schema").replaceChildren(...schemaRows(operation.schema));
  byId("errors").replaceChildren(headRow(["Status", "Code", "Message and example"]),
    element("tbody", {}, Object.entries(operation.responses).flatMap(errorRows)));
}

// ---- Sending a request

const READY = { mood: "ready", line: "Not sent yet", notes: ["The response appears here."] };
const failed = (line, ...notes) => ({ mood: "failed", line, notes });

function showOutcome() {
  const { mood, line, notes = [], response } = outcomes[current.id] ?? READY;
  const isBusy = mood === "busy";
  byId("status").className = mood;
  byId("status").replaceChildren(element("strong", {}, line),
    ...notes.map((note) => element("p", {}, prose(note))));
  byId("response").replaceChildren(...(response ? showResponse(response) : []));
  // A disabled button would lose the focus.
  byId("send").setAttribute("aria-disabled", isBusy);
  byId("send").textContent = isBusy ? "Sending" : "Send";
}

function showResponse({ headers, text, milliseconds }) {
  const shown = SHOWN_HEADERS.filter((name) => headers.has(name));
  const facts = [...shown.map((name) => [name, headers.get(name)]), ["time", `${milliseconds} ms`]];
  const list = element("dl", {}, facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  if (!text) return [list];
  const { value } = parse(text);
  const attributes = { tabindex: 0, role: "region", "aria-label": "Body of the response" };
  return [list, element("pre", attributes, value ? format(value) : text)];
}

async function send(event) {
  event.preventDefault();
  const operation = current;
  if (outcomes[operation.id]?.mood === "busy") return;
  const report = (outcome) => {
    outcomes[operation.id] = outcome;
    if (operation !== current) return;
    showOutcome();
    byId("status").scrollIntoView({ block: "nearest" });
  };
  report({ mood: "busy", line: "Sending" });
  report(await request(operation).catch(({ message }) => failed("the page failed", message)));
  await refresh();
  byId("stored").scrollTop = 0;
}

// Sends a request and describes its outcome.
async function request(operation) {
  const body = bodyOf(operation);
  const path = pathOf(operation);
  const started = performance.now();
  let message, response, text;
  try {
    message = new Request(path, { method: operation.method, headers: headersOf(operation), body });
  } catch (error) {
    return failed("not sent: a header is invalid", error.message);
  }
  if (new URL(message.url).pathname !== path) {
    return failed("not sent: . and .. are not ids", "A browser removes them from a path.");
  }
  try {
    response = await fetch(message);
    text = await response.text();
  } catch {
    return failed("no response: is the service running?", "Start it with `cargo serve`.");
  }
  const milliseconds = Math.round(performance.now() - started);
  const describe = response.ok ? describeSuccess : describeProblem;
  const outcome = await describe(operation, response, parse(text).value ?? {}, body);
  return { ...outcome, response: { headers: response.headers, text, milliseconds } };
}

// A 204 has no body, so the page looks for the records that have the id of the request.
async function describeSuccess(operation, { status, headers }, _, body) {
  const requestId = headers.get("x-request-id");
  const noun = nounOf(operation);
  if (headers.has("x-resource-id")) {
    // Other operations use it, such as `add_team_users`.
    entered.parameters[`${noun.replaceAll(" ", "_")}_id`] = headers.get("x-resource-id");
  }
  let kind;
  try {
    [kind] = await getJson(`/stored/by/${encodeURIComponent(requestId)}`);
  } catch {
    return { mood: "stored", line: `${status} successful`, notes: ["Cannot read the records."] };
  }
  if (!kind) {
    const notes = ["A record with this content is already stored. Nothing was changed."];
    return { mood: "unchanged", line: `${status} already exists`, notes };
  }
  const isNew = kind.records.some((record) => record.request_id === requestId);
  const names = kind.records.slice(0, 5).map((record) => `\`${idOf(kind, record)}\``);
  const more = kind.total > names.length ? ` and ${kind.total - names.length} more` : "";
  const notes = [`${capitalized(words(kind.kind))}: ${names.join(", ")}${more}`];
  const existing = countEntries(operation, body) - kind.total;
  if (existing > 0) notes.push(`${plural(existing, "other")} already existed.`);
  return { mood: "stored", line: `${status} ${isNew ? "stored" : "changed"}`, notes };
}

// The number of different entries in the array of a body, or 0.
function countEntries(operation, body) {
  const lists = Object.entries(operation.schema.properties).filter(([, one]) => resolve(one).items);
  const texts = lists.flatMap(([name, list]) => {
    const { properties = {} } = resolve(resolve(list).items);
    const entries = parse(body).value?.[name] ?? [];
    return entries.map((entry) => JSON.stringify(Object.keys(properties).map((one) => entry[one])));
  });
  return new Set(texts).size;
}

// What an operation creates or changes: `create_data_store` creates a data store.
const nounOf = (operation) => words(operation.id.replace(/^[a-z]+_/, ""));

async function describeProblem(operation, { status, statusText }, problem, body) {
  const { title, message, detail, errors = [] } = problem;
  let line = uncapitalized(title ?? message ?? statusText);
  if (status === 409) line = await describeConflict(operation, problem, body).catch(() => line);
  if (status === 422) line = `invalid body: ${plural(errors.length, "value")}`;
  const lines = errors.slice(0, 5).map((error) => `\`${error.pointer}\` ${error.detail}`);
  return failed(`${status} ${line}`, ...(detail ? [detail] : []), ...lines);
}

async function describeConflict(operation, { reason, resource_id: id, errors, title }, body) {
  const noun = nounOf(operation);
  if (reason === "other_description") return `taken by a ${noun} with another description`;
  if (reason === "other_id") {
    const [, list, index] = errors[0].pointer.split("/");
    return `taken by ${quote(parse(body).value[list][index].modelid)} with another id`;
  }
  if (!["other_name", "other_project_name"].includes(reason)) return uncapitalized(title);
  const prefix = noun.replaceAll(" ", "-").replace(/y$/, "");
  const { kind, key } = (await getJson("/stored")).find(({ kind }) => kind.startsWith(prefix));
  const ids = operation.parameters.filter((one) => !isHeader(one));
  const attributes = new URLSearchParams(ids.map((one) => [one.name, valueOf(one)]));
  if (id) attributes.set(key.at(-1), id);
  const { records } = await getJson(`/stored/${kind}?${attributes}`);
  const name = Object.keys(records[0]).find((attribute) => attribute.endsWith("_name"));
  return `taken by a ${noun} named ${quote(records[0][name])}`;
}

// ---- Stored records

// The records that the page shows, and when the newest of each kind was changed.
const shown = { stored: "", newest: undefined, limit: MAX_TABLE_ROWS };

const firstText = (...values) => values.find((one) => one && typeof one === "string") ?? "";
const changedAt = (record) => firstText(record?.updated_at, record?.created_at);
const idOf = (kind, record) => textOf(record[kind.key.at(-1)]);

// Where a record is: all parts of its key but the last.
function placeOf(kind, record) {
  const parts = kind.key.slice(0, -1);
  return parts.map((name) => `${PARTS[name] ?? words(name)} ${textOf(record[name])}`).join(", ");
}

// A time of this machine. Swedish dates and times are those of ISO 8601.
function timeText(value) {
  const date = new Date(value);
  return isNaN(date) ? value : date.toLocaleString("sv");
}

const valueText = (name, value) =>
  typeof value === "string" ? value : `${words(name)}: ${JSON.stringify(value)}`;

function showRecord(kind, record) {
  const isNew = shown.newest && changedAt(record) > (shown.newest[kind.kind] ?? "");
  const isChanged = changedAt(record) !== record.created_at;
  const isAudit = (name) => AUDIT.includes(name) && typeof record[name] === "string";
  const names = kind.columns.filter((name) => !kind.key.includes(name) && !isAudit(name));
  const values = names.filter((name) => (record[name] ?? "") !== "");
  // A name says more than a description.
  values.sort((a, b) => b.endsWith("_name") - a.endsWith("_name"));
  const author = firstText(record.updated_by, record.created_by);
  const texts = values.map((name) => valueText(name, record[name]));
  const details = [...texts, author && `by ${author}`].filter(Boolean).join(" · ");
  const time = changedAt(record);
  return element("li", { class: isNew && "new" },
    element("strong", {}, idOf(kind, record)),
    isNew ? element("em", {}, isChanged ? "changed" : "new") : "",
    element("time", { datetime: time, title: time }, timeText(time)),
    element("p", {}, details));
}

function showKind(kind) {
  const places = Map.groupBy(kind.records, (record) => placeOf(kind, record));
  const name = words(kind.kind);
  const all = `All ${plural(kind.total, "record")}`;
  const link = { href: `#/records/${kind.kind}`, "aria-label": `${all}: ${name}` };
  const groups = [...places].flatMap(([place, records]) => [
    element("h4", {}, place),
    element("ul", {}, records.map((record) => showRecord(kind, record))),
  ]);
  return element("section", { "data-kind": kind.kind, "aria-label": capitalized(name) },
    element("div", { class: "bar" }, element("h3", {}, capitalized(name)), element("a", link, all)),
    groups);
}

function showStored(kinds) {
  const filled = kinds.filter((kind) => kind.total > 0);
  filled.sort((a, b) => (changedAt(a.records[0]) < changedAt(b.records[0]) ? 1 : -1));
  const empty = kinds.filter((kind) => kind.total === 0).map((kind) => words(kind.kind));
  const list = new Intl.ListFormat("en", { type: "disjunction" }).format(empty);
  let rest = list && `No ${list} yet.`;
  if (filled.length === 0) rest = "No records yet. Send a request, and its records appear here.";
  const focused = document.activeElement.closest("#kinds a")?.hash;
  byId("kinds").replaceChildren(...filled.map(showKind), element("p", { class: "empty" }, rest));
  if (focused) document.querySelector(`#kinds a[href="${focused}"]`)?.focus();
  const newest = kinds.map(({ kind, records }) => [kind, changedAt(records[0])]);
  shown.newest = Object.fromEntries(newest);
}

async function load() {
  let line = "Live";
  try {
    const response = await fetch("/stored");
    const stored = await response.text();
    if (!response.ok) {
      line = "Cannot read the records";
    } else if (stored !== shown.stored) {
      showStored(JSON.parse(stored));
      if (kindInUrl()) await showAll(kindInUrl());
      shown.stored = stored;
    }
  } catch ({ message }) {
    line = "No response: is the service running?";
    byId("all-count").textContent = message;
    shown.stored = "";
  }
  const following = byId("following");
  following.className = line === "Live" ? "live" : "failed";
  // The same text is not announced again.
  if (following.textContent !== line) following.textContent = line;
}

// One request at a time, so that an older response cannot replace a newer one.
let loading = Promise.resolve();
const refresh = () => (loading = loading.then(load));

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL_MILLISECONDS);
}

// ---- All records of a kind

const kindInUrl = () => location.hash.match(/^#\/records\/([\w-]+)$/)?.[1];

function showRows(limit) {
  Object.assign(shown, { limit, stored: "" });
  refresh();
}

async function showAll(name) {
  const { columns, records, total } = await getJson(`/stored/${name}`);
  if (name !== kindInUrl()) return;
  const count = Math.min(shown.limit, total);
  const cell = (column, value) =>
    column.endsWith("_at") && typeof value === "string" ? timeText(value) : textOf(value);
  const rows = records.slice(0, count).map((record) =>
    element("tr", {}, columns.map((column) => element("td", {}, cell(column, record[column])))));
  byId("all-count").textContent =
    `${count.toLocaleString("en")} of ${plural(total, "record")}, the newest first`;
  byId("all-table").replaceChildren(
    element("table", {}, headRow(columns.map(words)), element("tbody", {}, rows)));
  byId("more").hidden = count === total;
}

// ---- Navigation

function showNavigation() {
  const groups = contract.tags.flatMap(({ name }) => {
    const own = operations.filter((operation) => operation.tags.includes(name));
    const links = own.map(({ id, summary }) =>
      element("li", {}, element("a", { href: `#/${id}` }, summary)));
    return [element("h2", {}, capitalized(name)), element("ul", {}, links)];
  });
  byId("operations").replaceChildren(...groups);
  const paragraphs = contract.info.description.split("\n\n");
  byId("introduction").replaceChildren(...paragraphs.map((text) => element("p", {}, prose(text))));
}

// Shows what the URL names. Returns its heading and the hash of its link.
function showView() {
  const { hash } = location;
  const isGuide = hash === "#/guide";
  const kind = kindInUrl();
  byId("guide").hidden = !isGuide;
  byId("all").hidden = !kind;
  byId("stored").hidden = Boolean(kind);
  byId("request").hidden = byId("reference").hidden = Boolean(isGuide || kind);
  if (isGuide) return [byId("guide-title"), hash];
  if (kind) {
    byId("all-title").textContent = capitalized(words(kind));
    byId("all-count").textContent = "Loading";
    byId("all-table").replaceChildren();
    showRows(MAX_TABLE_ROWS);
    return [byId("all-title"), hash];
  }
  showOperation(operations.find(({ id }) => hash === `#/${id}`) ?? operations[0]);
  return [byId("title"), `#/${current.id}`];
}

function navigate(event) {
  const [heading, hash] = showView();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === hash) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${heading.textContent} · workspace-management`;
  byId("menu").setAttribute("aria-expanded", false);
  // The focus follows the reader to the new content, but stays at the top when the page opens.
  if (event) {
    heading.focus({ preventScroll: true });
    heading.scrollIntoView();
  }
}

function listen() {
  byId("form").onsubmit = send;
  byId("form").onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  };
  byId("body").oninput = ({ target }) => {
    entered.bodies[current.id] = target.value;
    showBody();
  };
  byId("reset").onclick = reset;
  byId("copy").onclick = copySample;
  byId("more").onclick = () => showRows(Infinity);
  byId("menu").onclick = ({ target }) => {
    target.setAttribute("aria-expanded", target.getAttribute("aria-expanded") === "false");
  };
  byId("skip").onclick = (event) => {
    event.preventDefault();
    byId("main").focus();
  };
  addEventListener("hashchange", navigate);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
}

async function start() {
  try {
    contract = await getJson("/openapi.json");
    operations = operationsOf(contract.paths);
  } catch {
    byId("title").textContent = "The contract cannot be loaded";
    byId("description").textContent = "Is the service running? Start it, and reload the page.";
    return;
  }
  showNavigation();
  showLanguages();
  listen();
  navigate();
  byId("form").hidden = false;
  performance.mark("usable");
  poll();
}

start();
