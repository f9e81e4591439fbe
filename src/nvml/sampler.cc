#include "nvml/sampler.h"

#include <algorithm>
#include <utility>

namespace flopsight::nvml {
namespace {

using catalog::Metric;

// GPUs and instances that are remembered, with those that are gone: more than any host has.
constexpr std::size_t kEntitiesMax = 1024;

bool is_lost(const Value& value) {
  return !value.present() && (value.absence() == Absence::kDeviceLost || value.absence() == Absence::kResetRequired);
}

samples::GpuIdentity identity_of(const Device& device, const Instance* instance, const std::string& driver_version) {
  samples::GpuIdentity gpu;
  gpu.uuid = device.uuid;
  gpu.index = std::to_string(device.index);
  gpu.pci_bus_id = device.pci_bus_id;
  gpu.model_raw = device.name;
  gpu.driver_version = driver_version;
  if (instance != nullptr) {
    gpu.mig_instance = std::to_string(instance->gpu_instance);
    gpu.mig_profile = instance->profile;
  }
  return gpu;
}

}  // namespace

struct Sampler::Entity {
  samples::GpuIdentity gpu;
  GpmSample before;
  GpmSample after;  // memory that is used again
  units::Instant before_time;
  units::Instant seen;
};

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)) {}
Sampler::~Sampler() = default;

base::Result<std::unique_ptr<Sampler>> Sampler::open(SamplerOptions options) {
  std::unique_ptr<Sampler> sampler(new Sampler(std::move(options)));
  FLOPSIGHT_ASSIGN_OR_RETURN(sampler->session_, Session::open(sampler->options_.library_path));
  FLOPSIGHT_ASSIGN_OR_RETURN(sampler->devices_, sampler->session_->devices());
  return sampler;
}

const Snapshot& Sampler::sample(units::Instant now) {
  if (looked_.unix_milliseconds == 0) looked_ = now;
  snapshot_.time = now;
  snapshot_.gpus.clear();
  snapshot_.processes_problem.clear();
  if (ensure_session(now)) {
    note_xids();
    for (Device& device : devices_) sample_device(device, now);
    if (session_->driver_gone()) driver_went(now);
  }
  snapshot_.driver = session_ != nullptr;
  if (session_) {
    snapshot_.problem.clear();
    snapshot_.driver_version = session_->driver_version();
  }
  add_unseen(now);
  return snapshot_;
}

// True: there is a session, and devices_ are what it lists.
bool Sampler::ensure_session(units::Instant now) {
  if (session_) {
    const auto count = session_->device_count();
    if (!count) {
      driver_went(now);
      return false;
    }
    const bool lost = std::any_of(devices_.begin(), devices_.end(), [](const Device& device) { return device.absence.has_value(); });
    // A lost GPU that was reset is only seen by a new session.
    if (lost && (now - looked_) >= options_.look_again) {
      close_session(now, "");
    } else if (*count == devices_.size()) {
      return true;
    } else {
      return look(now);
    }
  } else if (closed_ && (now - *closed_) < options_.reopen) {
    return false;
  }
  auto session = Session::open(options_.library_path);
  if (!session.ok()) {
    close_session(now, session.error().message);
    return false;
  }
  session_ = std::move(session).value();
  return look(now);
}

bool Sampler::look(units::Instant now) {
  looked_ = now;
  auto devices = session_->devices();
  if (!devices.ok()) {
    close_session(now, devices.error().message);
    return false;
  }
  devices_ = std::move(devices).value();
  for (Device& device : devices_) recall(device);
  return true;
}

// A lost GPU does not say who it is. It is the one that had its index, if that one is not found under another.
void Sampler::recall(Device& device) const {
  if (!device.uuid.empty()) return;
  for (const auto& entity : entities_) {
    const bool elsewhere = std::any_of(devices_.begin(), devices_.end(), [&](const Device& other) { return other.uuid == entity->gpu.uuid; });
    if (entity->gpu.index != std::to_string(device.index) || elsewhere) continue;
    device.uuid = entity->gpu.uuid;
    device.name = entity->gpu.model_raw;
    device.pci_bus_id = entity->gpu.pci_bus_id;
    return;
  }
}

void Sampler::close_session(units::Instant now, std::string problem) {
  for (auto& entity : entities_) {
    entity->before = GpmSample();
    entity->after = GpmSample();
  }
  devices_.clear();
  session_.reset();
  closed_ = now;
  snapshot_.problem = std::move(problem);
}

void Sampler::driver_went(units::Instant now) {
  ++snapshot_.driver_restarts;
  close_session(now, std::string(absence_meaning(Absence::kDriverGone)));
  snapshot_.gpus.clear();
}

void Sampler::sample_device(Device& device, units::Instant now) {
  if (device.handle == nullptr) {
    Values unknown;
    unknown[Metric::kXid] = xid_of(device);
    sample_entity(device, nullptr, unknown, now);
    return;
  }
  Values values = session_->read(device);
  device.absence.reset();
  if (is_lost(values[Metric::kSmClock])) device.absence = values[Metric::kSmClock].absence();
  // The instances of a lost GPU are those that it had.
  if (!device.absence) session_->read_instances(device);
  values[Metric::kXid] = xid_of(device);
  if (device.instances.empty()) {
    sample_entity(device, nullptr, values, now);
  } else {
    for (const Instance& instance : device.instances) sample_entity(device, &instance, values, now);
  }
  if (device.absence) return;
  const auto processes = session_->processes(device);
  if (!processes.ok()) {
    if (snapshot_.processes_problem.empty()) snapshot_.processes_problem = processes.error().message;
    return;
  }
  for (GpuSample& gpu : snapshot_.gpus) {
    if (gpu.gpu.uuid != device.uuid || gpu.gpu.index != std::to_string(device.index)) continue;
    for (const Process& process : *processes) {
      const std::string instance = process.gpu_instance ? std::to_string(*process.gpu_instance) : "";
      if (gpu.gpu.mig_instance.empty() || gpu.gpu.mig_instance == instance) gpu.processes.push_back(process);
    }
  }
}

void Sampler::sample_entity(const Device& device, const Instance* instance, const Values& values, units::Instant now) {
  GpuSample& out = snapshot_.gpus.emplace_back();
  out.gpu = identity_of(device, instance, session_->driver_version());
  out.minor_number = device.minor_number;
  out.values = values;
  out.absence = device.absence;
  Entity& entity = entity_of(out.gpu);
  entity.seen = now;
  if (instance != nullptr && !device.absence) {
    out.values[Metric::kFramebufferUsed] = session_->memory_used(*instance);
    out.values[Metric::kGpuUtil] = Absence::kNotSupported;
  }
  read_activity(device, instance, entity, out, now);
}

void Sampler::read_activity(const Device& device, const Instance* instance, Entity& entity, GpuSample& out, units::Instant now) {
  if (device.absence) {
    entity.after = GpmSample(*device.absence);
  } else if (device.mig && instance == nullptr) {
    entity.after = GpmSample(Absence::kNoData);
  } else {
    session_->retake(device, instance, entity.after);
  }
  session_->add_activity(entity.before, entity.after, out.values);
  const Value& tensor = out.values[Metric::kTensorActive];
  if (!tensor.present()) out.activity_absence = tensor.absence();
  if (entity.before.present() && entity.after.present()) out.window = now - entity.before_time;
  if (entity.after.present()) {
    std::swap(entity.before, entity.after);
    entity.before_time = now;
  } else {
    // What comes next starts anew, whatever happened in between.
    entity.before = GpmSample();
  }
}

void Sampler::note_xids() {
  for (const XidEvent& event : session_->take_xids()) {
    const auto device = std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.handle == event.device; });
    if (event.xid == 0 || device == devices_.end()) continue;
    const auto known = std::find_if(xids_.begin(), xids_.end(), [&](const Xid& xid) { return xid.uuid == device->uuid; });
    if (known != xids_.end()) {
      known->last = event.xid;
    } else if (xids_.size() < kEntitiesMax) {
      xids_.push_back({device->uuid, event.xid});
    }
  }
}

Value Sampler::xid_of(const Device& device) const {
  for (const Xid& xid : xids_) {
    if (xid.uuid == device.uuid) return static_cast<double>(xid.last);
  }
  return session_->reports_xids(device) ? Value(0.0) : Value(Absence::kNotSupported);
}

Sampler::Entity& Sampler::entity_of(samples::GpuIdentity gpu) {
  for (auto& entity : entities_) {
    const samples::GpuIdentity& known = entity->gpu;
    const bool same = gpu.uuid.empty() ? known.uuid.empty() && known.index == gpu.index : known.uuid == gpu.uuid;
    if (!same || known.mig_instance != gpu.mig_instance) continue;
    entity->gpu = std::move(gpu);
    return *entity;
  }
  entities_.push_back(std::make_unique<Entity>());
  entities_.back()->gpu = std::move(gpu);
  return *entities_.back();
}

// What was there before and is not now. Instances that MIG no longer has are simply gone, as their GPU is there.
void Sampler::add_unseen(units::Instant now) {
  const auto is_there = [&](const std::string& uuid) {
    return std::any_of(entities_.begin(), entities_.end(), [&](const auto& other) { return other->gpu.uuid == uuid && other->seen == now; });
  };
  std::erase_if(entities_, [&](const auto& entity) {
    return entity->seen != now && session_ != nullptr && (is_there(entity->gpu.uuid) || (now - entity->seen) > options_.forget);
  });
  if (entities_.size() > kEntitiesMax) {
    std::sort(entities_.begin(), entities_.end(), [](const auto& a, const auto& b) { return a->seen > b->seen; });
    entities_.resize(kEntitiesMax);
  }
  for (const auto& entity : entities_) {
    if (entity->seen == now && session_ != nullptr) continue;
    GpuSample& out = snapshot_.gpus.emplace_back();
    out.gpu = entity->gpu;
    out.absence = out.activity_absence = session_ ? Absence::kDeviceGone : Absence::kDriverGone;
  }
}

}  // namespace flopsight::nvml
