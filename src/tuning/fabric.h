#pragma once
// The links between GPUs, and what collectives cost on them: alpha-beta models of rings, trees and hierarchies.
//
//   ring all-reduce           2(n-1) alpha + 2(n-1)/n S/B
//   tree all-reduce           2 ceil(log2 n) alpha + 2 S/B
//   hierarchical all-reduce   reduce-scatter and all-gather inside nodes, all-reduce of S/g between them
//   all-gather, reduce-scatter, all-to-all   (n-1) alpha + (n-1)/n S/B
//
// S bytes of the whole message, B bytes a second of one GPU in one direction, n GPUs, g of them in a node. Sources: Thakur et al.
// 2005 (rings, trees); nccl-tests PERFORMANCE.md (bus bandwidth); alpha: NCCL's planning constants (src/graph/tuning.cc, protocol
// Simple: 3.4 us for a hop over NVLink, 5.7 over PCIe, 14 over the network; base 8.4 us). The share of a link that collectives
// reach is measured: 235 of 300 GB/s on an A100, 360 of 450 on an H100 (Bekman's ml-engineering, network chapter): 0.8; 45 of 50
// over InfiniBand: 0.9. These are not measurements of your cluster; every rate can be given instead.
// Units: bytes, seconds, bytes a second in one direction. Threads: pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/devices.h"
#include "units/units.h"

namespace flopsight::tuning {

struct Fabric {
  std::string_view name;
  std::string_view what;    // in a line, for the documentation
  std::uint64_t node_gpus = 8;  // that reach each other by node_rate
  units::BytesPerSecond node_rate;     // of a GPU, one direction, as printed
  units::BytesPerSecond network_rate;  // of a GPU's share of the node's network cards; 0: there is no network
  bool is_nvlink = true;
  std::string_view source;
};

const std::vector<Fabric>& fabrics();
std::optional<Fabric> find_fabric(std::string_view name);
// That of the reference system that is sold with the GPU; nothing for GPUs that have none.
std::optional<Fabric> reference_fabric(const catalog::Device& device);

// Why nothing is predicted where messages would take forever.
std::string no_finite_time(const Fabric& fabric);

// Where the GPUs of a group are: `count` of them, `in_node` to a node.
struct Group {
  std::uint64_t count = 1;
  std::uint64_t in_node = 1;

  std::uint64_t nodes() const { return (count + in_node - 1) / in_node; }
};
// A group whose members are `stride` GPUs apart.
Group group_of(const Fabric& fabric, std::uint64_t count, std::uint64_t stride);

enum class Algorithm : std::uint8_t { kRing, kTree, kHierarchical };
std::string_view algorithm_name(Algorithm algorithm);

units::Seconds all_reduce_time(const Fabric& fabric, const Group& group, units::Bytes bytes, Algorithm algorithm);
// The quickest algorithm, as NCCL chooses one.
struct Chosen {
  Algorithm algorithm = Algorithm::kRing;
  units::Seconds time;
};
Chosen all_reduce_time(const Fabric& fabric, const Group& group, units::Bytes bytes);

// Of small messages, as decoding has them: the quicker of the above and a ring in NCCL's protocol LL, which has less latency (0.6 us a hop over NVLink,
// 1.0 over PCIe, 2.7 over the network; base 6.6 us) and half of the bandwidth.
units::Seconds small_all_reduce_time(const Fabric& fabric, const Group& group, units::Bytes bytes);

// Of `bytes` in all, of which each GPU has or keeps its part: all-gather and reduce-scatter.
units::Seconds gather_time(const Fabric& fabric, const Group& group, units::Bytes bytes);
// Each GPU sends `bytes`, spread evenly over the group.
units::Seconds all_to_all_time(const Fabric& fabric, const Group& group, units::Bytes bytes);
// Tokens to routed experts, each of which a token chooses `top_k` of, evenly: once to each GPU that has one of them, and over the network once to each node, which
// hands it on while the next comes (DeepEP).
struct Dispatched {
  units::Bytes bytes;      // of all tokens of a GPU, once
  double experts_total = 1;
  double top_k_total = 1;
};
units::Seconds dispatch_once_time(const Fabric& fabric, const Group& group, const Dispatched& dispatched);
// One GPU to its neighbour in the group.
units::Seconds send_time(const Fabric& fabric, const Group& group, units::Bytes bytes);

}  // namespace flopsight::tuning
