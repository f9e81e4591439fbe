// Unit tests of the page: every src/**/*.test.ts is bundled by esbuild, which Vite brings, and run by Node's own test runner. With a word
// as argument, those whose path has it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = fileURLToPath(new URL("../src", import.meta.url));
const wanted = process.argv[2] ?? "";

function testsIn(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return testsIn(path);
    return name.endsWith(".test.ts") && path.includes(wanted) ? [path] : [];
  });
}

const tests = testsIn(source);
if (tests.length === 0) {
  console.error(`no test whose path has '${wanted}'`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), "flopsight-web-test-"));
try {
  await build({
    entryPoints: tests,
    outdir: folder,
    outbase: source,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    outExtension: { ".js": ".mjs" },
    logLevel: "error",
    define: { ROOT: JSON.stringify(fileURLToPath(new URL("../..", import.meta.url))) },
  });
  const built = tests.map((path) => join(folder, path.slice(source.length).replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
