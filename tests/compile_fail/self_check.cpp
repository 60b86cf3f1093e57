// Shows that muster_compile_fail sees a fault: a number is no pointer.
#include <muster/base/check.h>

int main() {
#ifndef MUSTER_CONTROL
  const char* text = 1.5;
  return text == nullptr;
#endif
}
