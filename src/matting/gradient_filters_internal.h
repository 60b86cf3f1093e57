#pragma once

#include <cstdint>

namespace muster {

// Both filters are products of a Gaussian g and its derivative, sigma 1.4. The literals are the
// correctly rounded values, so that the result does not depend on a library's exp.

/// g and x g for x = 0..4, each divided by its L2 norm over -4..4. Borders are replicated.
struct UnitFilter {
  static constexpr int radius = 4;
  static constexpr double smooth[] = {0.6348176886345873, 0.4918805056712307, 0.22881863203111708,
                                      0.0639063982712179, 0.01071564903975442};
  static constexpr double derive[] = {0.0, 0.4968886686448228, 0.46229677379028256,
                                      0.1936712156026914, 0.04329900879290055};

  static int64_t inside(int64_t at, int64_t count) {
    return at < 0 ? 0 : (at < count ? at : count - 1);
  }
};

/// g / sum(g) and x / sigma^2 times that for x = 0..6. Borders are reflected: d c b a | a b c d | d
/// c b a.
struct GaussianFilter {
  static constexpr int radius = 6;
  static constexpr double smooth[] = {
      0.2849593902948748,    0.22079720131221917,   0.10271298207197102,   0.028686548300940817,
      0.0048100814952872955, 0.0004842256119485471, 2.9266060195736962e-05};
  static constexpr double derive[] = {0.0,
                                      0.1126516333225608,
                                      0.10480916537956227,
                                      0.04390798209327676,
                                      0.009816492847525093,
                                      0.0012352694182360894,
                                      8.958998019103152e-05};

  static int64_t inside(int64_t at, int64_t count) {
    const int64_t period = 2 * count;
    const int64_t place = ((at % period) + period) % period;
    return place < count ? place : period - 1 - place;
  }
};

}  // namespace muster
