#include <muster/value/fields.h>

struct Sample {
  int label = 0;
#ifdef MUSTER_CONTROL
  std::array<float, 3> mean{};
#else
  float mean[3] = {};
#endif
  int index = 0;
};

static_assert(muster::field_count<Sample> == 3);
