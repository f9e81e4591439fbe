#pragma once
// Findings as alerts of Alertmanager's API v2 (POST /api/v2/alerts).
// Source: https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml and https://prometheus.io/docs/alerting/latest/alerts_api
//
// Labels are what Alertmanager knows an alert by, so those that were sent are kept (as text) and the end of an alert is told with the same
// ones, even where its severity or its user have become others since. Threads: values, pure functions.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "findings/record.h"
#include "notify/receiver.h"

namespace flopsight::notify {

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Alert {
  Labels labels;
  Labels annotations;
  units::Instant starts;
  units::Instant ends;  // in the future: it ends by itself then, unless it is sent again
  std::string link;     // generatorURL; empty: none
};

// Those of an open finding.
Labels alert_labels(const findings::Record& record, const Receiver& receiver);

// An open finding; without another word from us it ends four times `resend` after now, as Prometheus does it.
Alert open_alert(const findings::Record& record, const Receiver& receiver, std::string_view external_url, units::Instant now);
// The end of it. `labels` as labels_text() of what was sent. Ended now and not resolved where the record is open: silenced, acknowledged, or
// no longer for this receiver.
// Errors: kInvalid for a text that labels_text() did not make.
base::Result<Alert> ended_alert(const findings::Record& record, std::string_view labels, std::string_view external_url, units::Instant now);

std::string labels_text(const Labels& labels);

std::string alerts_body(std::span<const Alert> alerts);

// ".../finding?id=…"; empty without an external URL.
std::string link_of(const findings::Record& record, std::string_view external_url);

}  // namespace flopsight::notify
