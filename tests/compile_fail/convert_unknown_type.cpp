#include <muster/value/convert.h>

struct Options {
#ifdef MUSTER_CONTROL
  int workers = 0;
#else
  int* workers = nullptr;
#endif
};

muster::Value written(const Options& options) { return muster::to_value(options); }
