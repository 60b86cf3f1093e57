#include <muster/value/fields.h>

struct Options {
  int a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
  int i = 0, j = 0, k = 0, l = 0, m = 0, n = 0, o = 0, p = 0;
#ifndef MUSTER_CONTROL
  int q = 0;
#endif
};

static_assert(muster::field_count<Options> == 16);
