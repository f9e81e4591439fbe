// How many GPUs a fleet with MIG has, in each of its groups.
#include "serve/test_routes.h"

namespace flopsight::app {
namespace {

using test::count;
using test::number;
using test::text;

// GPU 0 is cut in three and GPU 1 in two; GPU 2 is whole. Pod a-0 has instances of both, a-1 one of GPU 0, a-2 the whole one.
class MigFleet : public test::Routed {
 protected:
  MigFleet() {
    fresh("mig");
    const struct {
      int gpu;
      const char* instance;
      const char* pod;
    } held[] = {{0, "1", "a-0"}, {0, "2", "a-0"}, {0, "3", "a-1"}, {1, "1", "a-0"}, {1, "2", ""}, {2, "", "a-2"}};
    for (int t = 0; t < 600; t += 15) {
      test::Message message;
      for (const auto& one : held) {
        test::LabelTexts labels;
        if (*one.instance != '\0') labels = {{"GPU_I_ID", one.instance}, {"GPU_I_PROFILE", "1g.10gb"}};
        labels.emplace_back("user", std::string("u-") + one.pod);
        message.gpu(test::labels_of(one.gpu, one.pod, labels), 0.2, t);
      }
      now_ = test::after(t);
      EXPECT_EQ(write(message).status, 204);
    }
    flush(true);
    now_ = test::after(600);
    routes_.reset();
    set("");
  }
  std::string fleet_count(const std::string& by) {
    const auto answer = json("/api/v1/fleet", {{"by", by}});
    return std::to_string(static_cast<int>(number(answer, "fleet.gpu_count")));
  }
  int count_of(const base::json::Value& answer, const std::string& list, const std::string& key, const std::string& name) {
    for (std::size_t i = 0; i < count(answer, list); ++i) {
      const std::string at = list + "." + std::to_string(i) + ".";
      if (text(answer, at + key) == name) return static_cast<int>(number(answer, at + "gpu_count"));
    }
    return -1;
  }
};

TEST_F(MigFleet, one_physical_gpu_is_one_in_every_grouping) {
  for (const char* by : {"job", "user", "team", "namespace", "host", "gpu", "model", "family"}) EXPECT_EQ(fleet_count(by), "3") << by;
  const auto jobs = json("/api/v1/fleet", {{"by", "job"}});
  EXPECT_EQ(count_of(jobs, "groups", "key.job", "a-0"), 2) << "three instances of two GPUs";
  EXPECT_EQ(count_of(jobs, "groups", "key.job", "a-1"), 1);
  EXPECT_EQ(count_of(jobs, "groups", "key.job", "a-2"), 1);
  EXPECT_EQ(count_of(json("/api/v1/fleet", {{"by", "host"}}), "groups", "key.host", "n0"), 3);
  EXPECT_EQ(count_of(json("/api/v1/fleet", {{"by", "namespace"}}), "groups", "key.namespace", "a"), 3);
  const auto list = json("/api/v1/jobs");
  EXPECT_EQ(count_of(list, "jobs", "job", "a-0"), 2);
  EXPECT_EQ(number(json("/api/v1/jobs/" + id_of("a-0")), "gpu_count"), 2);
}

TEST_F(MigFleet, whom_gpus_are_attributed_by_counts_them_once) {
  for (const char* by : {"job", "host"}) {
    const std::string answer = get("/api/v1/fleet", {{"by", by}}).body;
    EXPECT_NE(answer.find("GPUs attributed by: exported_pod 3, no job 2\""), std::string::npos) << by << answer;
  }
}

TEST_F(MigFleet, what_a_scheduler_counts_in_instances_is_no_number_of_gpus) {
  ASSERT_EQ(tell("/api/v1/jobs", R"([{"id": "a-0", "cluster": "a", "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T10:10:00Z", "hosts": "n0",
                                      "gpus": [{"type": "h100_1g.10gb", "count": 3, "is_mig": true}]}])").status / 100, 2);
  EXPECT_EQ(count_of(json("/api/v1/jobs"), "jobs", "job", "a-0"), 2);
  EXPECT_EQ(count_of(json("/api/v1/fleet", {{"by", "job"}}), "groups", "key.job", "a-0"), 2);
}

}  // namespace
}  // namespace flopsight::app
