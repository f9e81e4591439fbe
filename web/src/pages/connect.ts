// The first run: nothing has ever come in. Three ways to connect a fleet, each with what to copy.
import { h } from "../base/dom";
import type { Child } from "../base/dom";

interface Way {
  title: string;
  says: string;
  text: string;
}

// The address by which this page was reached is the one that others can send to, but for the loopback.
function ways(host: string, origin: string): Way[] {
  return [
    {
      title: "1. Scrape the exporters",
      says: "Flopsight asks dcgm-exporter, nvidia_gpu_exporter, AMD's exporter and others itself. Every target is at once a row on the data quality page.",
      text: "flopsight serve --scrape-targets node-1:9400,node-2:9400",
    },
    {
      title: "2. Let Prometheus send",
      says: "Prometheus (or vmagent) that scrapes them already sends a copy. In its configuration:",
      text: `remote_write:\n  - url: ${origin}/api/v1/write\n    write_relabel_configs:\n      - source_labels: [__name__]\n        regex: "DCGM_.*|dcgm_.*|nvidia_.*|accelerator_nvidia_.*|amd_.*|gpu_.*|slurm_job_.*|uuid:ceems_.*|kube_.*_owner|kube_pod_.*|megatron_training_.*|flopsight_gpu_.*|flopsight_training_.*"\n        action: keep`,
    },
    {
      title: "3. Import the past",
      says: "What a Prometheus-compatible server has already, into the store, while the service is stopped:",
      text: "flopsight import --store flopsight-data --prometheus http://prometheus:9090 --since 7d\nflopsight serve",
    },
    {
      title: "Only looking?",
      says: "A fleet that does not exist, and says so on every page:",
      text: `flopsight simulate --scenario steady --gpus 64 --remote-write http://${host}/api/v1/write`,
    },
  ];
}

async function copy(text: string, title: string, button: HTMLButtonElement): Promise<void> {
  const say = (what: string): void => {
    button.textContent = what;
    button.setAttribute("aria-label", `${what}: ${title}`);
  };
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    // No clipboard without TLS: the text is marked, and the keyboard copies it.
    const code = button.parentElement?.querySelector("code");
    if (code) getSelection()?.selectAllChildren(code);
    say("Marked: copy with Ctrl+C");
  }
}

// What to copy, with a button that does. `title`: of what it is, for those who hear the page.
export function copyable(title: string, text: string): HTMLElement {
  return h("div", { class: "copyable", "data-key": title },
    h("pre", { tabindex: "0", "aria-label": title, role: "region" }, h("code", null, text)),
    h("button", { type: "button", "aria-label": `Copy: ${title}`, on: { click: (event) => void copy(text, title, event.target as HTMLButtonElement) } }, "Copy"));
}

export function connectGuide(): Child {
  return h(
    "section",
    { class: "panel connect", "data-key": "connect" },
    h("h2", null, "No GPU has been seen yet"),
    h("p", null, "The service runs and waits. Connect a fleet in one of three ways; this page fills by itself about two minutes after the first sample."),
    ways(location.host, location.origin).map((way) =>
      h("div", { class: "way", "data-key": way.title },
        h("h3", null, way.title),
        h("p", null, way.says),
        copyable(way.title, way.text))),
  );
}
