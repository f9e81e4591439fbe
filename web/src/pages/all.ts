// Which page a view is.
import { FindingPage } from "./finding";
import { FindingsPage } from "./findings";
import { FleetPage } from "./fleet";
import { GpuPage, HostPage } from "./gpus";
import { JobPage } from "./job";
import { JobsPage } from "./jobs";
import { MapPage } from "./map";
import { MissingPage, missing } from "./missing";
import type { Context, Page } from "./page";
import { QualityPage } from "./quality";
import { StudyPage } from "./study";
import { WastePage } from "./waste";

export function makePage(context: Context): Page {
  const need = missing(context);
  if (need) return new MissingPage(context, need);
  switch (context.address.view) {
    case "fleet":
      return new FleetPage(context);
    case "jobs":
      return new JobsPage(context);
    case "job":
      return new JobPage(context);
    case "map":
      return new MapPage(context);
    case "study":
      return new StudyPage(context);
    case "findings":
      return new FindingsPage(context);
    case "finding":
      return new FindingPage(context);
    case "waste":
      return new WastePage(context);
    case "quality":
      return new QualityPage(context);
    case "host":
      return new HostPage(context);
    case "gpu":
      return new GpuPage(context);
  }
}
