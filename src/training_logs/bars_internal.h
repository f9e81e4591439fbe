#pragma once
// Progress bars as tqdm and rich draw them: "Train:  5%|▌     | 25/500 [00:30<09:30,  1.20s/it, loss=2.1]" and
// "Epoch 1/9 ━━━╸━━ 120/1000 0:00:30 • 0:03:20 4.35it/s". Their rate is smoothed over the last steps.

#include <cstdint>
#include <optional>
#include <string_view>

#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {

struct Bar {
  std::string_view description;  // "Train", "Epoch 1"; empty: a bar of the Trainer of Hugging Face, or of anybody
  std::int64_t done = 0;
  std::optional<std::int64_t> total;
  std::optional<double> seconds_each;  // absent before the first step ("?it/s")
};

// Nothing where the text has no bar that counts iterations.
std::optional<Bar> read_bar(std::string_view text);

// The bars of one text. A bar without a description is one of training only where the lines of the Trainer say so: evaluations,
// downloads and tokenizers draw the same.
class Bars {
 public:
  // The number of the step and its time, where the bar is one of training; `all`: somebody says that bars without a description are.
  std::optional<Extract> take(std::string_view text, bool all);
  // The Trainer told a loss; the bar before it is that of training.
  void loss_told() { training_total_ = last_total_ ? last_total_ : training_total_; }
  void training_ended() { training_total_ = last_total_ = std::nullopt; }

 private:
  std::optional<std::int64_t> last_total_, training_total_;  // of bars without a description
};

// Bars of Lightning, "Epoch 3: …": the batch counts on over epochs.
void lightning_bar(std::string_view text, Extract& extract);

}  // namespace flopsight::training_logs
