#pragma once
// How wrong the reference clock can be, by where it is from. OFU is in inverse proportion to it.
//
//   source                          OFU can be less by           OFU can be more by
//   catalogue, confidence high      nothing                      nothing
//   catalogue, medium or low        f_tensor / f_max : the peak  2.7 %: the largest conflict among public figures for one GPU
//                                   may be quoted at the maximum  (GB200: 152 or 148 SMs behind one printed peak)
//   NVML's maximum                  nothing                      the least f_tensor / f_max of all GPUs in the catalogue: the peak may
//                                                                be quoted at a lower clock, as on Hopper and the RTX A6000
//   given by the user               nothing, on the user's word  nothing
//
// FP64 tensor work on H100 has another clock (1980 MHz) than all other formats (1830 MHz): its OFU reads 8 % high, and as a
// counter does not tell the format, that is in no part. Sources: gpu_catalog.csv, whose rows name theirs. Threads: pure.

#include "catalog/devices.h"
#include "model/ofu.h"

namespace flopsight::model {

struct DomainError {
  double less_ratio = 0;  // of the OFU, >= 0
  double more_ratio = 0;
};

// device: nullptr where the catalogue does not know the model. A user's own row without a confidence is taken as the user's word.
DomainError domain_error(const ReferenceClock& reference, const catalog::Device* device);

}  // namespace flopsight::model
