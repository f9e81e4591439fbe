#include "tuning/fabric.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tuning/formulas.h"

namespace flopsight::tuning {
namespace {

using units::Bytes;
using units::BytesPerSecond;
using units::Seconds;

constexpr double kNodeShare = 0.8;
constexpr double kNetworkShare = 0.9;
constexpr double kNvlinkHopSeconds = 3.4e-6;
constexpr double kPcieHopSeconds = 5.7e-6;
constexpr double kNetworkHopSeconds = 14e-6;
constexpr double kBaseSeconds = 8.4e-6;
constexpr double kLowNvlinkHopSeconds = 0.6e-6;
constexpr double kLowPcieHopSeconds = 1.0e-6;
constexpr double kLowNetworkHopSeconds = 2.7e-6;
constexpr double kLowBaseSeconds = 6.6e-6;

constexpr std::string_view kDatasheet = "datasheets of the systems; Bekman, ml-engineering, network chapter";

struct Reference {
  std::string_view model;  // a beginning of the catalogue's
  std::string_view fabric;
};
constexpr std::array<Reference, 9> kReferences = {{
    {"A100-SXM4", "dgx-a100"}, {"H100-SXM5", "dgx-h100"}, {"H200-SXM", "dgx-h100"}, {"H800-SXM5", "hgx-h800"}, {"B200-SXM", "dgx-b200"},
    {"B300-SXM", "dgx-b300"}, {"GB200", "gb200-nvl72"}, {"GB300", "gb300-nvl72"}, {"V100-SXM2", "dgx-1v"},
}};

double hop_seconds(const Fabric& fabric) { return fabric.is_nvlink ? kNvlinkHopSeconds : kPcieHopSeconds; }
double node_rate(const Fabric& fabric) { return fabric.node_rate.value * kNodeShare; }
double network_rate(const Fabric& fabric) { return fabric.network_rate.value * kNetworkShare; }

// A ring over nodes goes through all network cards of its members at once: each of them has a ring (nccl-tests: bus bandwidth of whole nodes).
double ring_rate(const Fabric& fabric, const Group& group) {
  if (group.nodes() <= 1) return node_rate(fabric);
  const double between = network_rate(fabric) * static_cast<double>(group.in_node);
  return group.in_node > 1 ? std::min(node_rate(fabric), between) : between;
}

// Of one turn of a ring: n-1 hops, of which as many as there are nodes cross the network.
double turn_seconds(const Fabric& fabric, const Group& group) {
  const double hops = static_cast<double>(group.count - 1);
  const double across = group.nodes() > 1 ? static_cast<double>(group.nodes()) : 0;
  return std::max(0.0, hops - across) * hop_seconds(fabric) + across * kNetworkHopSeconds;
}

double part(const Group& group) { return static_cast<double>(group.count - 1) / static_cast<double>(group.count); }

}  // namespace

const std::vector<Fabric>& fabrics() {
  static const std::vector<Fabric> kAll = {
      {"dgx-1v", "8 GPUs by NVLink 2, 4 x 100 Gb/s InfiniBand", 8, BytesPerSecond(150e9), BytesPerSecond(6.25e9), true, kDatasheet},
      {"dgx-a100", "8 GPUs by NVLink 3, 200 Gb/s InfiniBand for each", 8, BytesPerSecond(300e9), BytesPerSecond(25e9), true, kDatasheet},
      {"dgx-h100", "8 GPUs by NVLink 4, 400 Gb/s InfiniBand for each (H100, H200)", 8, BytesPerSecond(450e9), BytesPerSecond(50e9), true, kDatasheet},
      {"hgx-h800", "8 GPUs by NVLink cut to 400 GB/s, 400 Gb/s InfiniBand for each", 8, BytesPerSecond(200e9), BytesPerSecond(50e9), true, kDatasheet},
      {"dgx-b200", "8 GPUs by NVLink 5, 400 Gb/s InfiniBand for each", 8, BytesPerSecond(900e9), BytesPerSecond(50e9), true, kDatasheet},
      {"dgx-b300", "8 GPUs by NVLink 5, 800 Gb/s InfiniBand for each", 8, BytesPerSecond(900e9), BytesPerSecond(100e9), true, kDatasheet},
      {"gb200-nvl72", "72 GPUs by NVLink 5, 400 Gb/s InfiniBand for each", 72, BytesPerSecond(900e9), BytesPerSecond(50e9), true, kDatasheet},
      {"gb300-nvl72", "72 GPUs by NVLink 5, 800 Gb/s InfiniBand for each", 72, BytesPerSecond(900e9), BytesPerSecond(100e9), true, kDatasheet},
      {"aws-p4d", "8 A100 by NVLink, 400 Gb/s EFA for all", 8, BytesPerSecond(300e9), BytesPerSecond(6.25e9), true, "AWS: instance types"},
      {"aws-p5", "8 H100 by NVLink, 3,200 Gb/s EFA for all", 8, BytesPerSecond(450e9), BytesPerSecond(50e9), true, "AWS: instance types"},
      {"gcp-a3-high", "8 H100 by NVLink, 800 Gb/s for all", 8, BytesPerSecond(450e9), BytesPerSecond(12.5e9), true, "Google Cloud: machine types"},
      {"gcp-a3-mega", "8 H100 by NVLink, 1,600 Gb/s for all", 8, BytesPerSecond(450e9), BytesPerSecond(25e9), true, "Google Cloud: machine types"},
      {"pcie-gen4", "8 GPUs by PCIe 4 x16, 100 Gb/s Ethernet for all", 8, BytesPerSecond(31e9), BytesPerSecond(1.5625e9), false, kDatasheet},
      {"pcie-gen5", "8 GPUs by PCIe 5 x16, 400 Gb/s for all", 8, BytesPerSecond(63e9), BytesPerSecond(6.25e9), false, kDatasheet},
      {"single-gpu", "GPUs that are not connected", 1, BytesPerSecond(0), BytesPerSecond(0), false, ""},
  };
  return kAll;
}

std::optional<Fabric> find_fabric(std::string_view name) {
  for (const Fabric& fabric : fabrics()) {
    if (fabric.name == name) return fabric;
  }
  return std::nullopt;
}

std::optional<Fabric> reference_fabric(const catalog::Device& device) {
  for (const Reference& row : kReferences) {
    if (device.model.starts_with(row.model)) return find_fabric(row.fabric);
  }
  return std::nullopt;
}

std::string no_finite_time(const Fabric& fabric) {
  return "no time can be predicted: some message has no link to go by; expected rates above 0 for the " + std::to_string(fabric.node_gpus) + " GPUs of a node and for the network, where GPUs talk over it";
}

Group group_of(const Fabric& fabric, std::uint64_t count, std::uint64_t stride) {
  Group group;
  group.count = count;
  group.in_node = std::clamp<std::uint64_t>(fabric.node_gpus / std::max<std::uint64_t>(stride, 1), 1, count);
  return group;
}

std::string_view algorithm_name(Algorithm algorithm) {
  constexpr std::array<std::string_view, 3> kNames = {"ring", "tree", "hierarchical"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

Seconds all_reduce_time(const Fabric& fabric, const Group& group, Bytes bytes, Algorithm algorithm) {
  if (group.count <= 1) return Seconds(0);
  if (algorithm == Algorithm::kRing) {
    return Seconds(kBaseSeconds + 2 * turn_seconds(fabric, group) + 2 * part(group) * bytes.value / ring_rate(fabric, group));
  }
  if (algorithm == Algorithm::kTree) {
    // A chain inside nodes, a tree over them.
    const double depth = std::ceil(std::log2(static_cast<double>(std::max<std::uint64_t>(group.nodes(), 1))));
    const double chain = static_cast<double>(std::min(group.in_node, group.count) - 1);
    const double latency = 2 * (depth * kNetworkHopSeconds + chain * hop_seconds(fabric));
    return Seconds(kBaseSeconds + latency + 2 * bytes.value / ring_rate(fabric, group));
  }
  Group inside = group;
  inside.count = std::min(group.count, group.in_node);
  const Group between{group.nodes(), 1};
  Seconds time = gather_time(fabric, inside, bytes) * 2;
  if (between.count > 1) time += all_reduce_time(fabric, between, Bytes(bytes.value / static_cast<double>(inside.count)), Algorithm::kRing);
  return time;
}

Chosen all_reduce_time(const Fabric& fabric, const Group& group, Bytes bytes) {
  Chosen best{Algorithm::kRing, all_reduce_time(fabric, group, bytes, Algorithm::kRing)};
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kHierarchical}) {
    const Seconds time = all_reduce_time(fabric, group, bytes, algorithm);
    if (time < best.time) best = {algorithm, time};
  }
  return best;
}

Seconds small_all_reduce_time(const Fabric& fabric, const Group& group, Bytes bytes) {
  if (group.count <= 1) return Seconds(0);
  const double hops = 2 * static_cast<double>(group.count - 1), across = group.nodes() > 1 ? 2 * static_cast<double>(group.nodes()) : 0;
  const double latency = kLowBaseSeconds + std::max(0.0, hops - across) * (fabric.is_nvlink ? kLowNvlinkHopSeconds : kLowPcieHopSeconds) + across * kLowNetworkHopSeconds;
  const double low = latency + 2 * part(group) * bytes.value / (ring_rate(fabric, group) / 2);
  return Seconds(std::min(low, all_reduce_time(fabric, group, bytes).time.value));
}

Seconds gather_time(const Fabric& fabric, const Group& group, Bytes bytes) {
  if (group.count <= 1) return Seconds(0);
  return Seconds(kBaseSeconds + turn_seconds(fabric, group) + part(group) * bytes.value / ring_rate(fabric, group));
}

Seconds all_to_all_time(const Fabric& fabric, const Group& group, Bytes bytes) {
  if (group.count <= 1) return Seconds(0);
  const double n = static_cast<double>(group.count);
  const double inside = static_cast<double>(std::min(group.in_node, group.count));
  const double in_node = (inside - 1) / n * bytes.value, outside = (n - inside) / n * bytes.value;
  double seconds = kBaseSeconds + hop_seconds(fabric) + (in_node > 0 ? in_node / node_rate(fabric) : 0);
  if (outside > 0) seconds += kNetworkHopSeconds + outside / network_rate(fabric);
  return Seconds(seconds);
}

Seconds dispatch_once_time(const Fabric& fabric, const Group& group, const Dispatched& d) {
  if (group.count <= 1) return Seconds(0);
  const double gpus = static_cast<double>(group.count), nodes = static_cast<double>(group.nodes()), inside = static_cast<double>(std::min(group.in_node, group.count));
  const double in_node = groups_touched_total(d.experts_total, d.top_k_total, gpus) * (inside - 1) / inside * d.bytes.value;
  const double outside = groups_touched_total(d.experts_total, d.top_k_total, nodes) * (nodes - 1) / nodes * d.bytes.value;
  double seconds = kBaseSeconds + hop_seconds(fabric) + (in_node > 0 ? in_node / node_rate(fabric) : 0);
  if (outside > 0) seconds = std::max(seconds, kBaseSeconds + hop_seconds(fabric) + kNetworkHopSeconds + outside / network_rate(fabric));
  return Seconds(seconds);
}

Seconds send_time(const Fabric& fabric, const Group& group, Bytes bytes) {
  if (group.count <= 1) return Seconds(0);
  const bool in_node = group.in_node > 1 && group.nodes() == 1;
  return Seconds(in_node ? hop_seconds(fabric) + bytes.value / node_rate(fabric) : kNetworkHopSeconds + bytes.value / network_rate(fabric));
}

}  // namespace flopsight::tuning
