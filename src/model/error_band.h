#pragma once
// The error band of an OFU over many samples: how far the true value of the allocated time can be from the one
// shown. Three parts, each from what was observed; nothing is assumed about what was not.
//
// 1. Clock sampling. Tensor activity is averaged over the sample by the hardware, the clock is one reading
//    in it. With w_i the time of sample i and a_i its activity, the error of  D = sum w_i a_i f_i / f_ref
//    has the variance  sum (w_i a_i sigma / f_ref)^2 , where sigma is the spread of the clock from one
//    sample to the next, estimated by successive differences over the busy samples of the GPU:
//        sigma^2 = sum (f_i - f_(i-1))^2 / (2 (n-1))
//    which does not count slow drift (thermal, power) that the samples follow anyway. A GPU with fewer than
//    two busy readings takes the spread across the busy GPUs of its model at that instant. The half width is
//    1.96 standard deviations (95 %). Independence of the samples is assumed. Where not even the model has two
//    busy readings, nothing is known but that the clock was between 0 and its maximum: the band spans that.
//    Sources: arXiv 2605.20799 names this error source and reports under 0.22 points at 30 s; von Neumann
//    (1941), "Distribution of the ratio of the mean square successive difference to the variance", for the estimator;
//    the propagation is ordinary.
//    Not covered: clock and activity that swing together inside one sample bias the product (NVIDIA
//    open-gpu-kernel-modules issue 1122). Cycle counters (DCGM 4.6) have neither error.
// 2. Coverage. Allocated time that was not measured could have been anything from idle to peak: it adds nothing
//    to the lower end and its whole time to the upper one (worst-case bounds as in Manski, 1989). With full
//    coverage this part is zero.
// 3. Sharing. Where a GPU was split equally among jobs, each job's part could have been anything from nothing to
//    all that the GPU delivered. MIG: a "1g" slice is taken for 1/7 of the GPU (NVIDIA MIG user guide);
//    no further error is added, and the report says so.
//
// All inputs are GPU-seconds; low and high are ratios of the allocated time, high may pass 1 where OFU does.

#include <optional>

namespace flopsight::model {

struct BandInputs {
  double allocated_seconds = 0;
  double measured_seconds = 0;
  double delivered_seconds = 0;           // integral of OFU over the measured time
  double sampling_variance_seconds2 = 0;  // part 1, in GPU-seconds squared
  // Hard limits where no variance can be had: how much less, and how much more, could have been delivered.
  // From sharing (part 3) and from a single clock reading (part 1).
  double limit_less_seconds = 0;
  double limit_more_seconds = 0;
};

struct Band {
  double low_ratio = 0;
  double high_ratio = 0;
};

// Nothing without measured time.
std::optional<Band> error_band(const BandInputs& inputs);

}  // namespace flopsight::model
