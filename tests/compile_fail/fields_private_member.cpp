#include <muster/value/fields.h>

class Warmup {
 public:
  int steps = 100;

#ifdef MUSTER_CONTROL
  static constexpr auto fields = muster::field_list(muster::Field{"steps", &Warmup::steps});
#endif

 private:
  [[maybe_unused]] int taken_ = 0;
};

static_assert(muster::field_count<Warmup> == 1);
