const POLL_MILLISECONDS = 1200;
const TIMEOUT_MILLISECONDS = 30_000;
const MAX_TABLE_ROWS = 500;
const NO_RESPONSE = "No response: is the service running?";

const demo = document.querySelector("meta[name=demo]").dataset;
// What the reader has entered, for all operations: parameters by name, and bodies by operation.
const entered = { parameters: { key: demo.key }, bodies: {} };
// The last outcome of each operation, and what cancels the operations that are being sent.
const outcomes = {};
const sending = {};
let contract, operations, current;
let tab = "Response";

const byId = (id) => document.getElementById(id);
const words = (name) => name.replaceAll(/[_-]/g, " ");
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// Inserts text only as text nodes, because text can come from records.
function element(name, attributes, ...children) {
  const created = document.createElement(name);
  const given = Object.entries(attributes).filter(([, value]) => (value ?? false) !== false);
  for (const [key, value] of given) created.setAttribute(key, value);
  created.append(...children.flat());
  return created;
}

// Turns text of the contract into nodes. In this text, backticks surround code.
function prose(text = "") {
  const parts = text.trim().split(/`([^`]+)`/);
  return parts.map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

// Gives text a direction of its own, so that the text cannot change the order of what follows.
const isolated = (text) => element("bdi", {}, text);

// Shows a text below the panel, and makes screen readers announce the text.
const announce = (text) => (byId("announcement").textContent = text);

// Shows a different text. Screen readers announce a text each time it is set.
function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

async function exchange(path, signals = [], options = {}) {
  const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MILLISECONDS), ...signals]);
  try {
    const response = await fetch(path, { ...options, signal });
    return { response, text: await response.text() };
  } catch ({ name }) {
    const messages = { AbortError: "Canceled", TimeoutError: "No response within 30 seconds" };
    throw new Error(messages[name] ?? NO_RESPONSE);
  }
}

async function getText(path, signals) {
  const { response, text } = await exchange(path, signals);
  if (!response.ok) throw new Error(`${response.status} ${text || response.statusText}`);
  return text;
}

// ---- The contract

const resolve = (node) =>
  node?.$ref?.slice(2).split("/").reduce((parent, name) => parent[name], contract) ?? node;

function operationsOf(paths) {
  return Object.entries(paths).map(([path, { post: operation }]) => {
    const content = operation.requestBody.content["application/json"];
    return {
      ...operation,
      path,
      method: "POST",
      id: operation.operationId,
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

// A parsed JSON value as a literal. Short values are on one line, except for the outermost value.
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
const operationById = (id) => operations.find((operation) => operation.id === id);
const bodyOf = (operation) => entered.bodies[operation.id] ?? operation.example;

function pathOf(operation) {
  return operation.path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(valueOf(operation.parameters.find((one) => one.name === name))));
}

// The API key. A pasted key can begin with the scheme.
const keyOf = () => entered.parameters.key.trim().replace(/^bearer\s+/i, "");

function headersOf(operation) {
  return [
    ["Authorization", keyOf() && `Bearer ${keyOf()}`],
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
  // Sends the body exactly as entered: JavaScript would round numbers and drop repeated fields.
  curl: (method, url, headers, body, text) => [
    `curl -i ${shell(url)}`,
    ...headers.map((pair) => `-H ${shell(pair.join(": "))}`),
    `-d ${shell(text)}`,
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
  TypeScript: (method, url, headers, body) => `const body = ${format(body)};
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

// Shows which key is sent, and the selected tab: the response, or a sample of the request.
function showTab() {
  const origin = keyOf() === demo.key ? "the public demo key of acme" : "your API key";
  byId("key-note").textContent = keyOf() ? `with ${origin}` : "without an API key";
  const { value, error } = parse(bodyOf(current));
  const url = location.origin + pathOf(current);
  const isResponse = tab === "Response";
  byId("response").hidden = !isResponse;
  byId("sample").hidden = isResponse;
  byId("url").textContent = `${current.method} ${url}`;
  byId("sample").textContent = error || isResponse
    ? "The body is not JSON."
    : SAMPLES[tab](current.method, url, headersOf(current), value, bodyOf(current));
  byId("copy").disabled = isResponse ? !outcomes[current.id]?.response : Boolean(error);
  byId("panel").setAttribute("aria-labelledby", `tab-${tab}`);
  for (const one of byId("tabs").children) {
    const isSelected = one.textContent === tab;
    one.setAttribute("aria-selected", isSelected);
    one.tabIndex = isSelected ? 0 : -1;
  }
}

function showTabs() {
  const names = ["Response", ...Object.keys(SAMPLES)];
  const select = (index) => {
    tab = names.at(index % names.length);
    showTab();
    byId(`tab-${tab}`).focus();
  };
  const tabs = names.map((name, index) => {
    const attributes = { id: `tab-${name}`, role: "tab", "aria-controls": "panel" };
    const one = element("button", attributes, name);
    const keys = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 };
    one.onclick = () => select(index);
    one.onkeydown = (event) => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      select(keys[event.key]);
    };
    return one;
  });
  byId("tabs").replaceChildren(...tabs);
}

async function copy() {
  const isResponse = tab === "Response";
  const source = byId(isResponse ? "received" : "sample");
  const { status, headers = [], text } = outcomes[current.id]?.response ?? {};
  const lines = [`HTTP ${status}`, ...[...headers].map((pair) => pair.join(": ")), "", text];
  try {
    await navigator.clipboard.writeText(isResponse ? lines.join("\n") : source.textContent);
    announce("Copied");
  } catch {
    // Without HTTPS, a browser has a clipboard only for pages from this machine.
    getSelection().selectAllChildren(source);
    announce("Selected: press Ctrl+C");
  }
}

// ---- What an operation needs

function field(name, value, note, description) {
  const id = `field-${name}`;
  const input = element("input", {
    id, value, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-describedby": `${id}-error ${id}-hint`,
  });
  input.oninput = () => {
    entered.parameters[name] = input.value;
    edited(id);
  };
  const label = name === "key" ? "API key" : name;
  return element("div", {},
    element("label", { for: id }, label, " ", element("small", {}, note)), input,
    element("p", { id: `${id}-error`, class: "error" }),
    element("p", { id: `${id}-hint`, class: "hint" }, prose(description)));
}

// Ties an error to a field, or removes the field's error.
function mark(id, ...error) {
  byId(id).setAttribute("aria-invalid", error.length > 0);
  byId(`${id}-error`).replaceChildren(...error);
}

// Marks the response as old after a field was edited.
function edited(id) {
  mark(id);
  if (outcomes[current.id]) outcomes[current.id].isOld = true;
  showOutcome();
}

function showForm() {
  const { description } = contract.components.securitySchemes.key;
  const note = current.isOpen ? "optional, sent as Authorization" : "sent as Authorization";
  const fields = (parameters, hint) => parameters.map((one) =>
    field(one.name, valueOf(one), hint, one.description));
  byId("fields").replaceChildren(
    ...fields(current.parameters.filter((one) => !isHeader(one)), ""));
  byId("header-fields").replaceChildren(field("key", entered.parameters.key, note, description),
    ...fields(current.parameters.filter(isHeader), "optional"));
  byId("headers").open = keyOf() !== demo.key;
  byId("body").value = bodyOf(current);
  showBody();
}

function showBody() {
  const { error } = parse(byId("body").value);
  mark("body", ...(error ? [`Not JSON: ${error}`] : []));
  showTab();
}

function reset() {
  for (const { name } of current.parameters) delete entered.parameters[name];
  delete entered.bodies[current.id];
  entered.parameters.key = demo.key;
  showForm();
  edited("body");
  announce("The example is restored");
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

// Adapts an example of a problem to the operation. Operations share responses in the contract.
function adapt(example) {
  const ids = current.parameters.filter((one) => !isHeader(one)).map((one) => one.name);
  const own = format(example).replaceAll(/(?<=not allowed to call )`\w+`/g, `\`${current.id}\``);
  return JSON.parse(ids.includes("org_id") ? own : own.replaceAll("org_id", ids[0]));
}

function errorRows([status, reference]) {
  const { description, content = {} } = resolve(reference);
  const examples = Object.values(content).flatMap((one) => Object.values(one.examples));
  return examples.map(({ value }) => {
    const example = adapt(value);
    const { code, reason, detail, message } = example;
    const cause = code ? element("code", {}, code) : "from API Gateway";
    return element("tr", {},
      element("th", { scope: "row" }, status),
      element("td", {}, cause, reason ? element("small", {}, reason) : ""),
      element("td", {}, element("details", {}, element("summary", {}, prose(detail ?? message)),
        element("p", {}, prose(description)), element("pre", {}, format(example)))));
  });
}

function showOperation(operation) {
  current = operation;
  byId("title").textContent = operation.summary;
  byId("description").replaceChildren(...prose(operation.description));
  const outcome = outcomes[operation.id];
  if (outcome && !sending[operation.id]) outcome.isOld = true;
  showForm();
  showOutcome();
  byId("schema").replaceChildren(...schemaRows(operation.schema));
  byId("errors").replaceChildren(headRow(["Status", "Code", "Message and example"]),
    element("tbody", {}, Object.entries(operation.responses).flatMap(errorRows)));
}

// ---- Sending a request

const READY = { mood: "ready", line: "Not sent yet", notes: ["The response appears here."] };
const failed = (line, ...notes) => ({ mood: "failed", line, notes });

// The parts of an outcome: its first line, its notes, and a link to the step to continue with.
function describe({ line, notes = [], label, step }) {
  const parts = notes.map((note) => element("p", {}, element("bdi", {}, prose(note))));
  const text = step && `step ${operations.indexOf(step) + 1}, ${step.summary}`;
  if (step) parts.push(element("p", {}, `${label} `, element("a", { href: `#/${step.id}` }, text)));
  return [element("strong", {}, isolated(line)), ...parts];
}

function showOutcome() {
  const outcome = outcomes[current.id] ?? READY;
  byId("status").className = outcome.isOld ? "old" : outcome.mood;
  byId("status").replaceChildren(
    outcome.isOld ? element("small", {}, "Previous request: ") : "", ...describe(outcome));
  byId("received").replaceChildren(...(outcome.response ? showResponse(outcome.response) : []));
  const isSending = current.id in sending;
  if (!isSending && document.activeElement === byId("cancel")) byId("send").focus();
  byId("cancel").hidden = !isSending;
  showTab();
}

function showResponse({ headers, text, milliseconds }) {
  const facts = [...headers, ["time", `${milliseconds} ms`]].map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, element("code", {}, value))));
  const list = element("dl", {}, facts);
  if (!text) return [list];
  const { value } = parse(text);
  const attributes = { tabindex: 0, role: "region", "aria-label": "Body of the response" };
  return [list, element("pre", attributes, value ? format(value) : text)];
}

async function send(event) {
  event.preventDefault();
  const operation = current;
  if (sending[operation.id]) return;
  sending[operation.id] = new AbortController();
  const isShown = () => operation === current && !kindInUrl();
  const report = (outcome) => {
    outcomes[operation.id] = outcome;
    const texts = describe(outcome).map((part) => part.textContent.replace(/[^.?]$/, "$&."));
    byId("outcome").textContent = [isShown() ? "" : `${operation.summary}:`, ...texts].join(" ");
    announce("");
    if (!isShown()) return;
    markFields(outcome);
    showOutcome();
    byId("status").scrollIntoView({ block: "nearest" });
  };
  tab = "Response";
  for (const { id } of byId("form").querySelectorAll("[aria-invalid=true]")) mark(id);
  showBody();
  report({ mood: "busy", line: "Sending" });
  const outcome = await request(operation, sending[operation.id].signal, report);
  delete sending[operation.id];
  report(outcome);
  await refresh();
  byId("stored").scrollTop = 0;
}

// Marks the fields that cause a failure.
function markFields({ fields = [], error }) {
  for (const name of fields) {
    const id = name === "body" ? name : `field-${name}`;
    // The page's own error about a body that is not JSON is more precise.
    if (byId(`${id}-error`)?.textContent === "") mark(id, ...prose(error));
    if (byId("headers").contains(byId(id))) byId("headers").open = true;
  }
}

const notSent = (name, line, error) =>
  ({ ...failed(`Not sent: ${line}`, error), fields: [name], error });

// Sends a request and describes the outcome. Reports the status at once, because reading the
// records can take longer than the response.
async function request(operation, canceled, report) {
  const { method, parameters } = operation;
  const headers = headersOf(operation);
  const dots = parameters.find((one) => !isHeader(one) && /^\.\.?$/.test(valueOf(one)));
  if (dots) return notSent(dots.name, ". and .. are not ids", "Browsers remove them from paths.");
  const [header] = headers.find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value)) ?? [];
  const name = header === "Authorization" ? "key" : header;
  if (name) return notSent(name, "a header is invalid", "Only ASCII characters can be sent.");
  const started = performance.now();
  let response, text;
  try {
    const options = { method, headers, body: bodyOf(operation) };
    ({ response, text } = await exchange(pathOf(operation), [canceled], options));
  } catch ({ message }) {
    return failed(message, message === NO_RESPONSE
      ? "Start it with `cargo serve`." : "The service may have stored the request.");
  }
  const { status } = response;
  const milliseconds = Math.round(performance.now() - started);
  const received = { response: { status, headers: response.headers, text, milliseconds } };
  report({ mood: response.ok ? "stored" : "failed", line: String(status), ...received });
  const outcome = response.ok
    ? await describeSuccess(operation, response, canceled)
    : describeProblem(response, parse(text).value ?? {});
  return { ...outcome, ...received };
}

// A 204 has no body, so the page looks for the records with the id of the request.
async function describeSuccess(operation, { status, headers }, canceled) {
  const requestId = headers.get("x-request-id");
  // Other operations need the new id, such as `team_id`.
  const id = headers.get("x-resource-id");
  if (id) entered.parameters[`${operation.id.replace(/^[a-z]+_/, "")}_id`] = id;
  const step = operations[operations.indexOf(operation) + 1];
  const success = (mood, line, note) =>
    ({ mood, line: `${status} ${line}`, notes: [note], label: "Next:", step });
  let kind;
  try {
    [kind] = JSON.parse(await getText(`/stored/by/${encodeURIComponent(requestId)}`, [canceled]));
  } catch {
    return success("stored", "successful", "Cannot read the records.");
  }
  const existing = "A record with this content is already stored. Nothing was changed.";
  if (!kind) return success("unchanged", "already exists", existing);
  const isNew = kind.records.some((record) => record.request_id === requestId);
  const names = kind.records.slice(0, 5).map((record) => `\`${idOf(kind, record)}\``);
  const more = kind.total > names.length ? ` and ${kind.total - names.length} more` : "";
  const note = `${capitalized(words(kind.kind))}: ${names.join(", ")}${more}`;
  return success("stored", isNew ? "stored" : "changed", note);
}

// The fields that cause a problem, by its code. Of other problems, the body is the cause.
const CAUSES = {
  unauthenticated: ["key"], organization_disabled: ["key"], operation_not_allowed: ["key"],
  other_organization: ["org_id", "key"], no_such_organization: ["org_id"],
  no_such_team: ["team_id"], project_not_allowed: ["project_id", "key"],
};

function describeProblem({ status, statusText }, problem) {
  const { title, message, detail, code, parameter, errors = [] } = problem;
  const name = title ?? message ?? statusText;
  const line = status === 422 ? `${name}: ${plural(errors.length, "value")}` : name;
  const lines = errors.slice(0, 5).map((error) => `\`${error.pointer}\` ${error.detail}`);
  if (errors.length > 5) lines.push(`and ${errors.length - 5} more`);
  // Responses from API Gateway itself have no detail.
  const advice = (status === 429 || status >= 500) && "Wait a moment, and retry this request.";
  const isBody = [400, 409, 413, 422].includes(status);
  const fields = parameter ? [parameter] : CAUSES[code] ?? (isBody ? ["body"] : []);
  const error = lines.join("; ") || (fields[0] === "body" ? name : detail);
  const step = code === "no_such_team" && operationById("create_team");
  const outcome = failed(`${status} ${line}`, ...[detail ?? advice, ...lines].filter(Boolean));
  return { ...outcome, fields, error, label: "Send this first:", step };
}

// ---- Stored records

// The records that the page shows, and when the newest of each kind was changed.
const shown = { stored: "", newest: undefined };

const changedAt = (record = {}) =>
  ["created_at", "updated_at", "restored_at"].map((name) => record[name] ?? "").sort().at(-1);
const columnTitle = (name) => words(name.replace(/_at$/, ""));
const idOf = (kind, record) => record[kind.key.at(-1)];

// A time in the time zone of this machine. The Swedish format is that of ISO 8601.
const timeText = (value) => (Date.parse(value) ? new Date(value).toLocaleString("sv") : value);
const changeText = (record, verb) =>
  `${timeText(record[`${verb}_at`])}\nby ${record[`${verb}_by`]}`;

function valueText(name, value) {
  if (name.endsWith("_id")) return `${words(name.slice(0, -3))} ${value}`;
  return typeof value === "string" ? value : `${words(name)}: ${JSON.stringify(value)}`;
}

function showRecord(kind, record) {
  const time = changedAt(record);
  const isNew = shown.newest && time > (shown.newest[kind.kind] ?? "");
  const change = time === record.created_at ? "new"
    : time === record.restored_at ? "restored" : "changed";
  const names = kind.columns.filter((name) => name !== kind.key.at(-1) && !/_(at|by)$/.test(name));
  // Most records belong to the demo organization, so its id is not shown.
  const values = names.filter((name) => !["", "acme"].includes(record[name] ?? ""));
  // Names come first, because a name says more than a description.
  values.sort((a, b) => b.endsWith("_name") - a.endsWith("_name"));
  const author = record.updated_by ?? record.created_by;
  const texts = values.map((name) => valueText(name, record[name]));
  // Most requests send the demo key, so its id is not shown.
  if (author && !demo.key.includes(author)) texts.push(`by ${author}`);
  const marks = ["removing", "restored"].filter((verb) => record[`${verb}_at`]);
  texts.unshift(...marks.map((verb) => `${verb} ${changeText(record, verb)}`));
  const details = texts.flatMap((text, i) => [i ? " · " : "", isolated(text)]);
  return element("li", { class: isNew && "new" },
    element("strong", {}, isolated(idOf(kind, record))),
    isNew ? element("em", {}, change) : "",
    element("time", { datetime: time, title: time }, timeText(time)),
    element("p", { title: texts.join(" · ") }, details));
}

function showKind(kind) {
  const name = words(kind.kind);
  const all = `All ${plural(kind.total, "record")}`;
  const link = { href: `#/records/${kind.kind}`, "aria-label": `${all}: ${name}` };
  const rows = kind.records.map((record) => showRecord(kind, record));
  return element("div", { "data-kind": kind.kind },
    element("div", { class: "bar" }, element("h3", {}, capitalized(name)), element("a", link, all)),
    element("ul", {}, rows));
}

function showStored(kinds) {
  const filled = kinds.filter((kind) => kind.total > 0);
  filled.sort((a, b) => (changedAt(a.records[0]) < changedAt(b.records[0]) ? 1 : -1));
  const focused = document.activeElement.closest("#kinds a")?.hash;
  byId("kinds").replaceChildren(...filled.map(showKind));
  byId("no-records").hidden = filled.length > 0;
  if (focused) document.querySelector(`#kinds a[href="${focused}"]`)?.focus();
  const newest = kinds.map(({ kind, records }) => [kind, changedAt(records[0])]);
  shown.newest = Object.fromEntries(newest);
}

async function load() {
  let line = "Live";
  try {
    const stored = await getText("/stored");
    if (stored !== shown.stored) {
      shown.stored = stored;
      showStored(JSON.parse(stored));
      await showAll(JSON.parse(stored));
    }
  } catch ({ message }) {
    line = message;
    Object.assign(shown, { stored: "", rows: "" });
    const isOld = byId("all-table").hasChildNodes();
    say("all-count", isOld ? `${line} These records may be out of date.` : line);
  }
  byId("following").className = line === "Live" ? "live" : "failed";
  say("following", line);
}

// One request at a time, so that an older response cannot replace a newer one.
let loading = Promise.resolve();
const refresh = () => (loading = loading.then(load));

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL_MILLISECONDS);
}

const kindInUrl = () => location.hash.match(/^#\/records\/([\w-]+)$/)?.[1];

function cellText(record, name) {
  const value = record[name] ?? "";
  return name.endsWith("_at") && value ? changeText(record, name.slice(0, -3)) : String(value);
}

async function showAll(kinds) {
  const name = kindInUrl();
  if (!name) return;
  if (!kinds.some(({ kind }) => kind === name)) return say("all-count", "There is no such kind.");
  const text = await getText(`/stored/${name}`);
  // Keeps the table if only records of other kinds changed, so that a selection stays.
  if (name !== kindInUrl() || text === shown.rows) return;
  const { columns, records, total } = JSON.parse(text);
  shown.rows = text;
  const count = Math.min(shown.limit, total);
  const names = columns.filter((column) => !column.endsWith("_by"));
  names.sort((a, b) => a.endsWith("_at") - b.endsWith("_at"));
  const cell = (record, column) =>
    element("td", { "data-name": columnTitle(column) }, isolated(cellText(record, column)));
  const rows = records.slice(0, count).map((record) =>
    element("tr", {}, names.map((column) => cell(record, column))));
  say("all-count", `${count.toLocaleString("en")} of ${plural(total, "record")}, the newest first`);
  byId("all-table").replaceChildren(
    element("table", {}, headRow(names.map(columnTitle)), element("tbody", {}, rows)));
  byId("more").hidden = count === total;
}

// ---- Navigation

// Shows the view in the URL. Returns the view's heading, and the hash of the link to the view.
function showView() {
  const kind = kindInUrl();
  byId("all").hidden = !kind;
  byId("request").hidden = byId("reference").hidden = byId("stored").hidden = Boolean(kind);
  if (kind) {
    byId("all-title").textContent = capitalized(words(kind));
    byId("all-count").textContent = "Loading";
    byId("all-table").replaceChildren();
    Object.assign(shown, { limit: MAX_TABLE_ROWS, stored: "", rows: "" });
    refresh();
    return [byId("all-title"), location.hash];
  }
  showOperation(operationById(location.hash.slice(2)) ?? operations[0]);
  return [byId("title"), `#/${current.id}`];
}

function navigate(event) {
  const [heading, hash] = showView();
  for (const link of document.querySelectorAll("nav a")) {
    link.ariaCurrent = link.hash === hash ? "page" : null;
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
    const isShortcut = event.ctrlKey || event.metaKey;
    if (event.key !== "Enter" || (event.target === byId("body") && !isShortcut)) return;
    // A key that is held down sends one request.
    if (event.repeat) event.preventDefault();
    else if (isShortcut) send(event);
  };
  // `false` cancels the second click of a double click.
  byId("send").onclick = (event) => event.detail < 2;
  byId("cancel").onclick = () => sending[current.id].abort();
  byId("body").oninput = ({ target }) => {
    entered.bodies[current.id] = target.value;
    edited("body");
    showBody();
  };
  byId("reset").onclick = reset;
  byId("copy").onclick = copy;
  byId("more").onclick = async () => {
    Object.assign(shown, { limit: Infinity, stored: "", rows: "" });
    await refresh();
    // The button is hidden now, and has lost the focus.
    byId("all-table").focus();
  };
  const menu = byId("menu");
  menu.onclick = () => menu.setAttribute("aria-expanded", menu.ariaExpanded === "false");
  document.querySelector("header").onkeydown = ({ key }) => {
    if (key !== "Escape" || menu.ariaExpanded === "false") return;
    menu.setAttribute("aria-expanded", false);
    menu.focus();
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
    contract = JSON.parse(await getText("/openapi.json"));
  } catch ({ message }) {
    byId("title").textContent = "The contract cannot be loaded";
    say("following", message);
    return setTimeout(start, POLL_MILLISECONDS);
  }
  operations = operationsOf(contract.paths);
  byId("operations").replaceChildren(...operations.map(({ id, summary }) =>
    element("li", {}, element("a", { href: `#/${id}` }, summary))));
  showTabs();
  listen();
  navigate();
  byId("form").hidden = byId("menu").hidden = false;
  performance.mark("usable");
  poll();
}

start();
