#include <muster/value/fields.h>

struct Common {
  int seed = 0;
};

#ifdef MUSTER_CONTROL
struct Options {
  Common common{};
#else
struct Options : Common {
#endif
  double lr = 0.1;
};

static_assert(muster::field_count<Options> == 2);
