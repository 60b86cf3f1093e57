#include <muster/value/fields.h>

struct Sample {
#ifdef MUSTER_CONTROL
  const int* label = nullptr;
#else
  const int& label;
#endif
};

static_assert(muster::field_count<Sample> == 1);
