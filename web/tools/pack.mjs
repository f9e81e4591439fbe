// Puts the files that Vite built into dist/page.pack, which CMake puts into the program. Format (read by apps/flopsight/serve/page.cc):
//
//   flopsight-page 1
//   PATH <tab> TYPE <tab> TAG <tab> PLAIN BYTES <tab> GZIP BYTES     one line a file
//   (an empty line, then for each file its bytes, plain and compressed)
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const BUNDLE_BYTES_MAX = 250 * 1024; // of everything that the page loads, compressed
const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

function filesIn(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesIn(path) : [path];
  });
}

const lines = ["flopsight-page 1"];
const bodies = [];
let total = 0;
for (const path of filesIn(dist).sort()) {
  const type = types[extname(path)];
  if (path.endsWith(".pack")) continue;
  if (!type) throw new Error(`${path}: a kind of file without a content type in tools/pack.mjs`);
  const plain = readFileSync(path);
  const gzip = gzipSync(plain, { level: 9 });
  const tag = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  lines.push([relative(dist, path), type, tag, plain.length, gzip.length].join("\t"));
  bodies.push(plain, gzip);
  total += gzip.length;
}
if (total > BUNDLE_BYTES_MAX) throw new Error(`the page is ${total} bytes compressed, over ${BUNDLE_BYTES_MAX}`);
writeFileSync(join(dist, "page.pack"), Buffer.concat([Buffer.from(lines.join("\n") + "\n\n"), ...bodies]));
