#include "report_sources.h"

namespace flopsight::app {

base::Status roll_prometheus(const ReportArguments&, units::Window, const ReportSettings&, const Env&,
                             SourceResult&) {
  return base::Error{base::ErrorCode::kUnsupported, "not yet"};
}

}  // namespace flopsight::app
