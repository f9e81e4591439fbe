#include "base/json.h"
#include "base/text.h"
#include "findingdesk/finding_desk.h"
#include "findings/record_json.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::json::Object;
using base::json::Value;
using findings::Record;

constexpr std::uint64_t kPageMax = 1'000;

// What an answer says of an error, with the status that goes with it.
Error error_of(const net::HttpResponse& response) {
  const auto value = base::json::parse(response.body);
  const Value* told = value.ok() ? value->find("error") : nullptr;
  const std::string text = told != nullptr && told->as_string() != nullptr ? *told->as_string() : response.status_line;
  const ErrorCode code = response.status == 404 ? ErrorCode::kNotFound : response.status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalid;
  return {code, base::printable(text, 400)};
}

class ServerDesk : public FindingDesk {
 public:
  ServerDesk(std::string url, net::HttpClient client) : url_(std::move(url)), client_(std::move(client)) {}

  Result<findings::Page> list(const std::vector<std::pair<std::string, std::string>>& filters, std::uint64_t limit) override {
    findings::Page out;
    std::string query;
    for (const auto& [name, text] : filters) query += name + "=" + net::url_encode(text) + "&";
    std::string cursor;
    while (out.records.size() < limit) {
      const std::uint64_t count = std::min<std::uint64_t>(kPageMax, limit - out.records.size());
      std::string path = "/api/v1/findings?" + query + "limit=" + std::to_string(count);
      if (!cursor.empty()) path += "&cursor=" + net::url_encode(cursor);
      FLOPSIGHT_ASSIGN_OR_RETURN(const Value answer, ask(path, std::nullopt));
      const Value* list = answer.find("findings");
      const Value* total = answer.find("findings_total");
      const Value* next = answer.find("next_cursor");
      if (list == nullptr || list->as_array() == nullptr || total == nullptr || total->as_number() == nullptr || next == nullptr) return unexpected();
      for (const Value& item : *list->as_array()) {
        FLOPSIGHT_ASSIGN_OR_RETURN(Record record, findings::record_from_json(item).within(url_));
        out.records.push_back(std::move(record));
      }
      out.records_total = static_cast<std::uint64_t>(*total->as_number());
      if (next->as_string() == nullptr || list->as_array()->empty()) break;
      cursor = *next->as_string();
    }
    return out;
  }
  Result<Record> show(const std::string& id) override { return record("/api/v1/findings/" + net::url_encode(id), std::nullopt); }
  Result<Record> act(const std::string& id, const std::string& what, const std::string& author, const std::string& note) override {
    return record("/api/v1/findings/" + net::url_encode(id) + "/" + what, base::json::dump(Object{{"author", author}, {"note", note}}, 0));
  }
  Result<std::vector<findings::Silence>> silences() override {
    FLOPSIGHT_ASSIGN_OR_RETURN(const Value answer, ask("/api/v1/silences", std::nullopt));
    const Value* list = answer.find("silences");
    if (list == nullptr || list->as_array() == nullptr) return unexpected();
    std::vector<findings::Silence> out;
    for (const Value& item : *list->as_array()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(findings::Silence silence, findings::silence_from_json(item).within(url_));
      out.push_back(std::move(silence));
    }
    return out;
  }
  Result<findings::Silence> add_silence(const std::string& told) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(const Value answer, ask("/api/v1/silences", told));
    return findings::silence_from_json(answer).within(url_);
  }
  base::Status end_silence(const std::string& id) override {
    const auto answer = ask("/api/v1/silences/" + net::url_encode(id) + "/end", std::string());
    return answer.ok() ? base::Status() : base::Status(answer.error());
  }

 private:
  Error unexpected() const { return {ErrorCode::kInvalid, url_ + ": no answer of a flopsight service, expected JSON with findings"}; }
  Result<Value> ask(const std::string& path, std::optional<std::string> body) {
    net::HttpRequest request;
    request.url = url_ + path;
    request.body = std::move(body);
    request.content_type = "application/json";
    request.any_status = true;
    FLOPSIGHT_ASSIGN_OR_RETURN(const net::HttpResponse response, client_.send(request));
    if (response.status / 100 != 2) return error_of(response).within(net::url_without_credentials(url_));
    auto value = base::json::parse(response.body);
    if (!value.ok() || value->as_object() == nullptr) return unexpected();
    return value;
  }
  Result<Record> record(const std::string& path, std::optional<std::string> body) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const Value answer, ask(path, std::move(body)));
    return findings::record_from_json(answer).within(url_);
  }

  std::string url_;
  net::HttpClient client_;
};

}  // namespace

Result<std::unique_ptr<FindingDesk>> server_desk(const FindingsArguments& arguments) {
  net::HttpOptions http = arguments.http;
  FLOPSIGHT_RETURN_IF_ERROR(read_credentials(arguments, http));
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient client, net::HttpClient::create(std::move(http)));
  return std::unique_ptr<FindingDesk>(std::make_unique<ServerDesk>(arguments.server, std::move(client)));
}

}  // namespace flopsight::app
