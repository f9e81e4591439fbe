// One page, whose files have their hash in their name. All addresses in it are relative, so that it also works behind a proxy that serves it
// under a path of its own.
import { defineConfig } from "vite";

// The host stays that of the page, as the service refuses what the pages of others send.
const service = { target: process.env.FLOPSIGHT_URL ?? "http://127.0.0.1:9890", changeOrigin: false };

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // data: addresses would need a wider policy
    modulePreload: false,
    chunkSizeWarningLimit: 250,
  },
  server: { proxy: { "/api": service, "/metrics": service } },
});
