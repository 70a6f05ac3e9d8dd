// Bundles src/ into ort_rknpu/present/assets, where the wheel carries it: users need no build step.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  entryPoints: { report: here("src/main.js") },
  outdir: here("../ort_rknpu/present/assets"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  legalComments: "inline",
  charset: "ascii",
});
await build({
  entryPoints: { report: here("src/style.css") },
  outdir: here("../ort_rknpu/present/assets"),
  minify: true,
});
